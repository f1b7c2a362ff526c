"""The words of a call context, under the names that emitters use; the runtime lays them out."""

from xlapy_runtime.calling import ContextWord

CONTEXT_RUNTIME_CALL = ContextWord.RUNTIME_CALL.value
CONTEXT_ARENA = ContextWord.ARENA.value
CONTEXT_CONSTANTS = ContextWord.CONSTANTS.value
CONTEXT_CANCELLED = ContextWord.CANCELLED.value
CONTEXT_POLL = ContextWord.POLL.value
CONTEXT_PARALLEL = ContextWord.PARALLEL.value
CONTEXT_PROCESS = ContextWord.PROCESS.value
CONTEXT_SEED = ContextWord.SEED.value
CONTEXT_CALL_NUMBER = ContextWord.CALL_NUMBER.value
CONTEXT_POLLED = ContextWord.POLLED.value
CONTEXT_INTERRUPTED = ContextWord.INTERRUPTED.value
CONTEXT_MEMBER = ContextWord.MEMBER.value
CONTEXT_OWNER = ContextWord.OWNER.value
CONTEXT_CALLS = ContextWord.CALLS.value
CONTEXT_WORDS = len(ContextWord)
