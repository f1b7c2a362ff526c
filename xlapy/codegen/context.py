"""The words of a call context, under the names that emitters use; the runtime lays them out."""

from xlapy_runtime import calling
from xlapy_runtime.calling import ContextWord

CONTEXT_RUNTIME_CALL = ContextWord.RUNTIME_CALL
CONTEXT_ARENA = ContextWord.ARENA
CONTEXT_CONSTANTS = ContextWord.CONSTANTS
CONTEXT_CANCELLED = ContextWord.CANCELLED
CONTEXT_POLL = ContextWord.POLL
CONTEXT_PARALLEL = ContextWord.PARALLEL
CONTEXT_PROCESS = ContextWord.PROCESS
CONTEXT_SEED = ContextWord.SEED
CONTEXT_CALL_NUMBER = ContextWord.CALL_NUMBER
CONTEXT_POLLED = ContextWord.POLLED
CONTEXT_INTERRUPTED = ContextWord.INTERRUPTED
CONTEXT_MEMBER = ContextWord.MEMBER
CONTEXT_OWNER = ContextWord.OWNER
CONTEXT_CALLS = ContextWord.CALLS
CONTEXT_LOOK = ContextWord.LOOK
CONTEXT_SITES = ContextWord.SITES
CONTEXT_WORDS = calling.CONTEXT_WORDS
