"""The methods of `XlaOp` and `XlaBuilder` that come from op functions, for type checkers and editors.

Made by `xlapy ops --stub > xlapy/builder/method_types.pyi`; a test compares them. There is no such module at run time.
"""

from collections.abc import Sequence
from typing import Any

from xlapy.builder.arguments import Integers
from xlapy.builder.builder import ComputationLike
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, Operands
from xlapy.builder.windows import Padding, PaddingLike
from xlapy.hlo.attributes import ComparisonDirection, ComparisonType, CustomCallApiVersion, Transpose
from xlapy.hlo.shape import Shape

class OpMethods:
    def abs(self) -> XlaOp:
        """Element by element: absolute value; modulus of a complex number."""
    def acos(self) -> XlaOp:
        """Element by element: arc cosine."""
    def acosh(self) -> XlaOp:
        """Element by element: inverse hyperbolic cosine."""
    def add(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: sum; logical or for pred."""
    def add_dependency(self, token: XlaOp) -> XlaOp:
        """The operand, available only after `token`."""
    def all_gather(
        self,
        all_gather_dimension: int,
        shard_count: int,
        replica_groups: Any = (),
        channel_id: Any = None,
        shape_with_layout: Any = None,
        use_global_device_ids: bool | None = None,
    ) -> XlaOp:
        """Concatenates the operands of the processes of each group. A tuple, or a list of arrays, gives a tuple."""
    def all_gather_done(self) -> XlaOp:
        """Waits for an AllGatherStart and returns what AllGather would."""
    def all_gather_start(
        self,
        all_gather_dimension: int,
        shard_count: int,
        replica_groups: Any = (),
        channel_id: Any = None,
        use_global_device_ids: bool | None = None,
    ) -> XlaOp:
        """Begins an AllGather; its result is for AllGatherDone."""
    def all_reduce(
        self,
        computation: ComputationLike,
        replica_groups: Any = (),
        channel_id: Any = None,
        shape_with_layout: Shape | None = None,
        use_global_device_ids: bool | None = None,
    ) -> XlaOp:
        """Reduces the operand over the processes of each group. A tuple, or a list of arrays, gives a tuple."""
    def all_reduce_done(self) -> XlaOp:
        """Waits for an AllReduceStart and returns what AllReduce would: an array, or a tuple for several operands."""
    def all_reduce_start(
        self,
        computation: ComputationLike,
        replica_groups: Any = (),
        channel_id: Any = None,
        use_global_device_ids: bool | None = None,
    ) -> XlaOp:
        """Begins an AllReduce; its result is for AllReduceDone."""
    def all_to_all(
        self,
        split_dimension: int,
        concat_dimension: int,
        split_count: int,
        replica_groups: Any = (),
        layout: Any = None,
        channel_id: Any = None,
    ) -> XlaOp:
        """Cuts the operand along one dimension; the k-th process of a group gets the k-th part of everybody's operand,
        and concatenates them along the other dimension. `split_count` is how many processes a group has."""
    def all_to_all_done(self) -> XlaOp:
        """Waits for an AllToAllStart and returns what AllToAll would."""
    def all_to_all_start(self, dimension: int, replica_groups: Any = (), channel_id: Any = None) -> XlaOp:
        """Begins an AllToAll that cuts and concatenates along one dimension; its result is for AllToAllDone."""
    def all_to_all_tuple(self, replica_groups: Any = (), layout: Any = None, channel_id: Any = None) -> XlaOp:
        """The k-th process of a group gets the k-th operand of everybody, as a tuple."""
    def asin(self) -> XlaOp:
        """Element by element: arc sine."""
    def asinh(self) -> XlaOp:
        """Element by element: inverse hyperbolic sine."""
    def astype(self, new_element_type: Any) -> XlaOp:
        """The same values in another element type: floats truncate and saturate to integers, integers wrap."""
    def atan(self) -> XlaOp:
        """Element by element: arc tangent."""
    def atan2(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: angle of the point (rhs, lhs)."""
    def atanh(self) -> XlaOp:
        """Element by element: inverse hyperbolic tangent."""
    def batch_norm_grad(
        self, scale: Operand, mean: Operand, variance: Operand, grad_output: Operand, epsilon: float, feature_index: int
    ) -> XlaOp:
        """The gradients of BatchNormTraining: the tuple (of the operand, of the scale, of the offset)."""
    def batch_norm_inference(
        self, scale: Operand, offset: Operand, mean: Operand, variance: Operand, epsilon: float, feature_index: int
    ) -> XlaOp:
        """Normalizes each feature by the given mean and variance."""
    def batch_norm_training(self, scale: Operand, offset: Operand, epsilon: float, feature_index: int) -> XlaOp:
        """Normalizes each feature by its own mean and variance: the tuple (output, means, variances)."""
    def bessel_i0e(self) -> XlaOp:
        """Element by element: e^-|x| times the modified Bessel function of order 0."""
    def bessel_i1e(self) -> XlaOp:
        """Element by element: e^-|x| times the modified Bessel function of order 1."""
    def bitcast_convert_type(self, new_element_type: Any) -> XlaOp:
        """The bits of the elements read as another type; a narrower one adds a last dimension, a wider one consumes
        it."""
    def broadcast(self, sizes: Integers) -> XlaOp:
        """The operand replicated along new dimensions of `sizes`, which come first."""
    def broadcast_in_dim(self, shape: Integers, broadcast_dimensions: Integers = ()) -> XlaOp:
        """The operand in an array of dimensions `shape`: dimension i becomes `broadcast_dimensions[i]`, of the same
        size unless it is 1, and everything is replicated along the others."""
    def cast(self, new_element_type: Any) -> XlaOp:
        """The same values in another element type: floats truncate and saturate to integers, integers wrap."""
    def cbrt(self) -> XlaOp:
        """Element by element: cube root."""
    def ceil(self) -> XlaOp:
        """Element by element: round toward +inf."""
    def cholesky(self, lower: bool = True) -> XlaOp:
        """The triangular factor of positive definite matrices: a = l lᴴ, or a = uᴴ u unless `lower`."""
    def clz(self) -> XlaOp:
        """Element by element: number of leading zero bits."""
    def collapse(self, dimensions: Integers) -> XlaOp:
        """Consecutive dimensions made into one."""
    def collective_broadcast(self, replica_groups: Any = (), channel_id: Any = None) -> XlaOp:
        """Everybody in a group gets the operand of its first process; who is in no group gets zeros."""
    def collective_broadcast_done(self) -> XlaOp:
        """Waits for a CollectiveBroadcastStart and returns what CollectiveBroadcast would."""
    def collective_broadcast_start(self, replica_groups: Any = (), channel_id: Any = None) -> XlaOp:
        """Begins a CollectiveBroadcast; its result is for CollectiveBroadcastDone."""
    def collective_permute(self, source_target_pairs: Any, channel_id: Any = None, inplace: bool = False) -> XlaOp:
        """Sends the operand from the source to the target of each pair; who is no target gets zeros."""
    def collective_permute_done(self) -> XlaOp:
        """Waits for a CollectivePermuteStart and returns what CollectivePermute would."""
    def collective_permute_start(self, source_target_pairs: Any, channel_id: Any = None) -> XlaOp:
        """Begins a CollectivePermute; its result is for CollectivePermuteDone."""
    def compare(
        self,
        rhs: Operand,
        direction: ComparisonDirection | str,
        compare_type: ComparisonType | str | None = None,
        broadcast_dimensions: Sequence[int] | None = (),
    ) -> XlaOp:
        """Compares element by element; the result is pred. Operands are broadcast as those of Add."""
    def complex(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: complex number of a real and an imaginary part."""
    def conditional(self, *arguments: Any, **named: Any) -> XlaOp:
        """Runs one branch on its operand and returns its result."""
    def conj(self) -> XlaOp:
        """The complex conjugate; a real number is its own."""
    def conv(
        self,
        rhs: Operand,
        window_strides: Integers | None = None,
        padding: PaddingLike = Padding.VALID,
        lhs_dilation: Integers | None = None,
        rhs_dilation: Integers | None = None,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Any = None,
        preferred_element_type: Any = None,
    ) -> XlaOp:
        """The convolution of (batch, features, spatial ...) with the kernel (output features, input features, spatial
        ...): (batch, output features, spatial ...). The kernel is not flipped."""
    def conv_general(
        self,
        rhs: Operand,
        window_strides: Integers | None,
        padding: PaddingLike,
        dimension_numbers: Any,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Any = None,
        preferred_element_type: Any = None,
    ) -> XlaOp:
        """The convolution of arrays whose dimensions are in any order, without dilation."""
    def conv_general_dilated(
        self,
        rhs: Operand,
        window_strides: Integers | None,
        padding: PaddingLike,
        lhs_dilation: Integers | None = None,
        rhs_dilation: Integers | None = None,
        dimension_numbers: Any = None,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Any = None,
        preferred_element_type: Any = None,
        window_reversal: Sequence[bool] | None = None,
    ) -> XlaOp:
        """The convolution of arrays whose dimensions are in any order, with dilations."""
    def conv_with_general_dimensions(
        self,
        rhs: Operand,
        window_strides: Integers | None,
        padding: PaddingLike,
        dimension_numbers: Any,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Any = None,
        preferred_element_type: Any = None,
    ) -> XlaOp:
        """The convolution of arrays whose dimensions are in any order, without dilation."""
    def conv_with_general_padding(
        self,
        rhs: Operand,
        window_strides: Integers,
        padding: PaddingLike,
        lhs_dilation: Integers | None = None,
        rhs_dilation: Integers | None = None,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Any = None,
        preferred_element_type: Any = None,
    ) -> XlaOp:
        """Conv, with a (low, high) pair of padding for each spatial dimension; negative padding removes elements."""
    def convert_element_type(self, new_element_type: Any) -> XlaOp:
        """The same values in another element type: floats truncate and saturate to integers, integers wrap."""
    def copy(self) -> XlaOp:
        """The same value in memory of its own, perhaps in another layout."""
    def cos(self) -> XlaOp:
        """Element by element: cosine."""
    def cosh(self) -> XlaOp:
        """Element by element: hyperbolic cosine."""
    def cross_replica_sum(self, replica_groups: Any = ()) -> XlaOp:
        """AllReduce with addition. `replica_groups` may also be a flat list: the group of each replica."""
    def digamma(self) -> XlaOp:
        """Element by element: the derivative of lgamma."""
    def div(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: quotient; integers truncate and never trap."""
    def dot(self, rhs: Operand, precision_config: Any = None, preferred_element_type: Any = None) -> XlaOp:
        """The product of vectors and matrices: contracts the last dimension of `lhs` with the first of `rhs`."""
    def dot_general(
        self, rhs: Operand, dimension_numbers: Any, precision_config: Any = None, preferred_element_type: Any = None
    ) -> XlaOp:
        """Sums of products over contracting dimensions, for each index of the batch dimensions."""
    def dynamic_reshape(
        self, dim_sizes: Sequence[Operand], new_size_bounds: Sequence[int], dims_are_dynamic: Sequence[bool]
    ) -> XlaOp:
        """Reshape to sizes that are scalars s32 of the program, one per dimension and at most the bounds."""
    def dynamic_slice(self, start_indices: Operands, slice_sizes: Integers) -> XlaOp:
        """The slice of `slice_sizes` at `start_indices`, moved inward until it fits."""
    def dynamic_update_slice(self, update: Operand, start_indices: Operands) -> XlaOp:
        """The operand with `update` written at `start_indices`, moved inward until it fits."""
    def eigh(
        self, lower: bool = True, max_iter: int = 15, epsilon: float = 1e-05, sort_eigenvalues: bool = True
    ) -> tuple[XlaOp, XlaOp]:
        """Eigenvectors (the columns of a unitary matrix) and eigenvalues of Hermitian matrices: (v, w) with a v = v
        w."""
    def eq(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for EQ; the result is pred. Operands are broadcast as those of Add."""
    def eq_total_order(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for EQ in the total order of floats, -NaN < -inf < ... < -0 < +0 < ... < +NaN;
        the result is pred. Operands are broadcast as those of Add."""
    def erf(self) -> XlaOp:
        """Element by element: error function."""
    def erf_inv(self) -> XlaOp:
        """Element by element: the inverse of the error function."""
    def erfc(self) -> XlaOp:
        """Element by element: 1 - erf(x), exact for large x too."""
    def exp(self) -> XlaOp:
        """Element by element: e^x."""
    def expm1(self) -> XlaOp:
        """Element by element: e^x - 1, accurate near zero."""
    def fft(self, fft_type: Any, fft_length: Integers) -> XlaOp:
        """Fourier transforms over the innermost dimensions, one for each length; a length is a size in the time
        domain."""
    def floor(self) -> XlaOp:
        """Element by element: round toward -inf."""
    def gather(
        self,
        start_indices: Operand,
        dimension_numbers: Any,
        slice_sizes: Integers,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> XlaOp:
        """Slices of `a`, each at the start that a vector of `start_indices` says, moved inward until it fits."""
    def ge(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for GE; the result is pred. Operands are broadcast as those of Add."""
    def ge_total_order(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for GE in the total order of floats, -NaN < -inf < ... < -0 < +0 < ... < +NaN;
        the result is pred. Operands are broadcast as those of Add."""
    def get_dimension_size(self, dimension: int) -> XlaOp:
        """The run-time size of a dimension, as s32."""
    def get_tuple_element(self, index: int) -> XlaOp:
        """Element `index` of a tuple."""
    def gt(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for GT; the result is pred. Operands are broadcast as those of Add."""
    def gt_total_order(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for GT in the total order of floats, -NaN < -inf < ... < -0 < +0 < ... < +NaN;
        the result is pred. Operands are broadcast as those of Add."""
    def igamma(self, x: Operand) -> XlaOp:
        """P(a, x), the regularized lower incomplete gamma function."""
    def igamma_grad_a(self, x: Operand) -> XlaOp:
        """The derivative of Igamma(a, x) by a."""
    def igammac(self, x: Operand) -> XlaOp:
        """Q(a, x) = 1 - P(a, x), the regularized upper incomplete gamma function."""
    def imag(self) -> XlaOp:
        """Element by element: imaginary part; zero for a real number."""
    def infeed_with_token(self, shape: Shape, config: str = "") -> XlaOp:
        """Reads one item of `shape` from the device's infeed, after `token`. The result is (data, token)."""
    def is_finite(self) -> XlaOp:
        """Element by element: neither infinite nor NaN."""
    def le(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for LE; the result is pred. Operands are broadcast as those of Add."""
    def le_total_order(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for LE in the total order of floats, -NaN < -inf < ... < -0 < +0 < ... < +NaN;
        the result is pred. Operands are broadcast as those of Add."""
    def lgamma(self) -> XlaOp:
        """Element by element: the logarithm of the absolute value of the gamma function."""
    def log(self) -> XlaOp:
        """Element by element: natural logarithm."""
    def log1p(self) -> XlaOp:
        """Element by element: ln(1 + x), accurate near zero."""
    def logical_and(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: logical, or bitwise, and."""
    def logical_not(self) -> XlaOp:
        """Element by element: logical, or bitwise, not."""
    def logical_or(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: logical, or bitwise, or."""
    def logistic(self) -> XlaOp:
        """Element by element: 1 / (1 + e^-x)."""
    def lt(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for LT; the result is pred. Operands are broadcast as those of Add."""
    def lt_total_order(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for LT in the total order of floats, -NaN < -inf < ... < -0 < +0 < ... < +NaN;
        the result is pred. Operands are broadcast as those of Add."""
    def lu(self) -> tuple[XlaOp, XlaOp, XlaOp]:
        """The factors of matrices with partial pivoting, p a = l u: (both triangles in one matrix, pivots,
        permutation)."""
    def max(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: larger of two; NaN wins."""
    def min(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: smaller of two; NaN wins."""
    def mul(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: product; logical and for pred."""
    def multi_collective_permute(
        self, source_target_pairs: Any, channel_id: Any = None, inplace: bool = False
    ) -> XlaOp:
        """CollectivePermute of several arrays at once; the result is a tuple."""
    def ne(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for NE; the result is pred. Operands are broadcast as those of Add."""
    def ne_total_order(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Compares element by element for NE in the total order of floats, -NaN < -inf < ... < -0 < +0 < ... < +NaN;
        the result is pred. Operands are broadcast as those of Add."""
    def neg(self) -> XlaOp:
        """Element by element: -x; unsigned integers wrap."""
    def next_after(self, end: Operand) -> XlaOp:
        """The floating-point number next to `start` on the way to `end`."""
    def optimization_barrier(self) -> XlaOp:
        """The operand; no pass moves computation across it."""
    def outfeed(self, shape_with_layout: Shape | None = None, outfeed_config: str = "") -> XlaOp:
        """Writes the operand to the device's outfeed. The result is an empty tuple."""
    def outfeed_with_token(
        self, token: XlaOp, shape_with_layout: Shape | None = None, outfeed_config: str = ""
    ) -> XlaOp:
        """Writes the operand to the device's outfeed, after `token`. The result is a token."""
    def pad(self, padding_value: Operand, padding_config: Any) -> XlaOp:
        """Puts padding between neighbours and at the edges (negative: removes)."""
    def polygamma(self, x: Operand) -> XlaOp:
        """The n-th derivative of Digamma at x."""
    def population_count(self) -> XlaOp:
        """Element by element: number of set bits."""
    def pow(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: lhs to the power rhs."""
    def product_of_elementary_householder_reflectors(self, taus: Operand) -> XlaOp:
        """The product of the reflections that `QrDecomposition` packs; as many of its columns as `a` has."""
    def qr(self, full_matrices: bool) -> tuple[XlaOp, XlaOp]:
        """Unitary q and upper triangular r with q r = a; q is square if `full_matrices`, else as narrow as possible."""
    def qr_decomposition(self) -> tuple[XlaOp, XlaOp]:
        """The QR decomposition of matrices as LAPACK packs it: (r above Householder vectors, their factors tau)."""
    def random_gamma_grad(self, x: Operand) -> XlaOp:
        """The derivative by a of a sample x of the gamma distribution with shape a."""
    def real(self) -> XlaOp:
        """Element by element: real part."""
    def reciprocal(self) -> XlaOp:
        """1 / operand."""
    def recv_done(self) -> XlaOp:
        """Waits for a Recv that was given a channel id. The result is the data."""
    def recv_from_host(self, shape: Shape, handle: Any) -> XlaOp:
        """Receives data of `shape` from the host, after `token`. The result is (data, token)."""
    def recv_with_token(self, shape: Shape, handle: Any) -> XlaOp:
        """Receives data of `shape` from a channel, after `token`. The result is (data, token)."""
    def reduce(self, init_value: Operand, computation: ComputationLike, dimensions_to_reduce: Integers) -> XlaOp:
        """Folds dimensions with `computation`, from `init_value`."""
    def reduce_all(self, init_value: Operand, computation: ComputationLike) -> XlaOp:
        """Folds all dimensions into a scalar."""
    def reduce_precision(
        self, *positional: int, exponent_bits: int | None = None, mantissa_bits: int | None = None
    ) -> XlaOp:
        """Rounds to a float format of so many bits, and back. The bits are keyword-only: specifications differ in
        order."""
    def reduce_scatter(
        self,
        computation: ComputationLike,
        scatter_dimension: int,
        shard_count: int,
        replica_groups: Any = (),
        channel_id: Any = None,
        layout: Any = None,
        use_global_device_ids: bool | None = None,
    ) -> XlaOp:
        """Reduces over the processes of each group; the k-th one gets the k-th part. A tuple or a list gives a
        tuple."""
    def reduce_scatter_done(self) -> XlaOp:
        """Waits for a ReduceScatterStart and returns what ReduceScatter would."""
    def reduce_scatter_start(
        self,
        computation: ComputationLike,
        scatter_dimension: int,
        shard_count: int,
        replica_groups: Any = (),
        channel_id: Any = None,
        use_global_device_ids: bool | None = None,
    ) -> XlaOp:
        """Begins a ReduceScatter; its result is for ReduceScatterDone."""
    def reduce_window(
        self,
        init_values: Operands,
        computation: ComputationLike,
        window_dimensions: Integers,
        window_strides: Integers | None = None,
        padding: PaddingLike = Padding.VALID,
        base_dilations: Integers | None = None,
        window_dilations: Integers | None = None,
    ) -> XlaOp:
        """Folds the elements of a sliding window with `computation`, at each of its positions."""
    def reduce_window_with_general_padding(
        self,
        init_values: Operands,
        computation: ComputationLike,
        window_dimensions: Integers,
        window_strides: Integers,
        base_dilations: Integers,
        window_dilations: Integers,
        padding: PaddingLike,
    ) -> XlaOp:
        """ReduceWindow, with dilations and a (low, high) pair of padding for each dimension."""
    def regularized_incomplete_beta(self, b: Operand, x: Operand) -> XlaOp:
        """I_x(a, b), the distribution function of the beta distribution."""
    def rem(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: remainder with the sign of the dividend."""
    def remove_dynamic_dimension(self, dimension: int) -> XlaOp:
        """The operand with the static size that is the bound of a dynamic dimension: zeros stand behind its
        elements."""
    def reshape(self, dimensions: Integers | None = None, new_sizes: Integers | None = None) -> XlaOp:
        """The elements in row-major order under new sizes: `Reshape(x, new_sizes)`."""
    def rev(self, dimensions: Integers) -> XlaOp:
        """The operand with the order along `dimensions` reversed."""
    def reverse(self, dimensions: Integers) -> XlaOp:
        """The operand with the order along `dimensions` reversed."""
    def rng_bernoulli(self, shape: Shape) -> XlaOp:
        """1 with probability `mean`, else 0, as u32. The mean is an f32."""
    def rng_normal(self, sigma: Operand, shape: Shape) -> XlaOp:
        """Numbers that are normally distributed, with mean `mu` and standard deviation `sigma`."""
    def rng_uniform(self, b: Operand, shape: Shape) -> XlaOp:
        """Numbers that are uniformly distributed in [a, b). Every run gives others, unless the seed is given again."""
    def round(self) -> XlaOp:
        """Element by element: nearest integer, ties away from zero."""
    def round_nearest_even(self) -> XlaOp:
        """Element by element: nearest integer, ties to even."""
    def rsqrt(self) -> XlaOp:
        """Element by element: 1 / sqrt(x)."""
    def scatter(
        self,
        scatter_indices: Operand,
        updates: Operands,
        update_computation: ComputationLike,
        dimension_numbers: Any,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> XlaOp:
        """The input (or several), with windows of `updates` combined into it where vectors of `scatter_indices` say."""
    def select(self, on_true: Operand, on_false: Operand) -> XlaOp:
        """`on_true` where `pred` holds, else `on_false`. A scalar `pred` chooses a whole side, which may be a tuple."""
    def select_and_scatter(
        self,
        select: ComputationLike,
        window_dimensions: Integers,
        window_strides: Integers | None,
        padding: PaddingLike,
        source: Operand,
        init_value: Operand,
        scatter: ComputationLike,
    ) -> XlaOp:
        """Selects one element at each position of a window over the operand, and scatters the position's source element
        to it: the result begins as `init_value` everywhere, and `scatter` combines what is there with the source
        element."""
    def select_and_scatter_with_general_padding(
        self,
        select: ComputationLike,
        window_dimensions: Integers,
        window_strides: Integers,
        padding: PaddingLike,
        source: Operand,
        init_value: Operand,
        scatter: ComputationLike,
    ) -> XlaOp:
        """SelectAndScatter, with a (low, high) pair of padding for each dimension."""
    def send(self, channel: Any) -> XlaOp:
        """Sends the operand on a channel."""
    def send_done(self) -> XlaOp:
        """Waits for a Send that was given a channel id. The result is a token."""
    def send_to_host(self, token: XlaOp, shape_with_layout: Shape | None, handle: Any) -> XlaOp:
        """Sends the operand to the host, after `token`. The result is a token."""
    def send_with_token(self, token: XlaOp, handle: Any) -> XlaOp:
        """Sends the operand on a channel, after `token`, and waits until it is sent. The result is a token."""
    def set_dimension_size(self, val: Operand, dimension: int) -> XlaOp:
        """The operand, of which only the first `val` entries along `dimension` exist at run time."""
    def shift_left(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: shift left; zero beyond the width."""
    def shift_right_arithmetic(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: shift right, filling with the sign."""
    def shift_right_logical(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: shift right, filling with zeros."""
    def sign(self) -> XlaOp:
        """Element by element: sign; keeps -0 and NaN; x / |x| for a complex number."""
    def sin(self) -> XlaOp:
        """Element by element: sine."""
    def sinh(self) -> XlaOp:
        """Element by element: hyperbolic sine."""
    def slice(self, start_indices: Integers, limit_indices: Integers, strides: Integers | None = None) -> XlaOp:
        """Of each dimension the elements start, start + stride ... below limit."""
    def slice_in_dim(self, start_index: int, limit_index: int, stride: int, dimno: int) -> XlaOp:
        """Slice along one dimension, whole in the others."""
    def sort(
        self,
        values: Operands | None = None,
        comparator: ComputationLike | None = None,
        dimension: int = -1,
        is_stable: bool = False,
    ) -> XlaOp:
        """Sorts the keys along a dimension, and moves the values alike, if there are any: the result then is a
        tuple."""
    def sort_key_val(self, values: Operand, dimension: int = -1) -> XlaOp:
        """Sorts keys, ascending, and moves the values alike: a tuple of both."""
    def sqrt(self) -> XlaOp:
        """Element by element: square root."""
    def square(self) -> XlaOp:
        """operand * operand."""
    def sub(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: difference."""
    def svd(self, max_iter: int = 100, epsilon: float = 1e-06) -> tuple[XlaOp, XlaOp, XlaOp]:
        """Singular values d, descending, with u and v of orthonormal columns: (u, d, v) with a = u d vH."""
    def tan(self) -> XlaOp:
        """Element by element: tangent."""
    def tanh(self) -> XlaOp:
        """Element by element: hyperbolic tangent."""
    def top_k(self, k: int, largest: bool = True) -> XlaOp:
        """The `k` largest (or smallest) elements of each row of the last dimension, best first, and their positions."""
    def transpose(self, permutation: Integers | None = None) -> XlaOp:
        """Dimension i of the result is dimension `permutation[i]` of the operand; without one, the dimensions
        reversed."""
    def triangular_solve(
        self, b: Operand, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: Any = Transpose.NO_TRANSPOSE
    ) -> XlaOp:
        """The x of op(a) x = b, or of x op(a) = b unless `left_side`, for triangular `a`."""
    def uniform_dequantize(
        self, expressed_type: Any, scales: Any, zero_points: Any = 0, quantization_dimension: int | None = None
    ) -> XlaOp:
        """What stored integers stand for: (operand - zero point) * scale, as floats of `expressed_type`."""
    def uniform_quantize(
        self,
        storage_type: Any,
        scales: Any,
        zero_points: Any = 0,
        quantization_dimension: int | None = None,
        storage_min: int | None = None,
        storage_max: int | None = None,
    ) -> XlaOp:
        """The integers nearest to operand / scale, ties to even, plus the zero point, clamped to the range of the
        storage."""
    def xor(self, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        """Element by element: logical, or bitwise, exclusive or."""
    def zeta(self, q: Operand) -> XlaOp:
        """The Hurwitz zeta function, the sum of (q + i)^-x over i = 0, 1, 2 ..."""

class BuilderMethods:
    def after_all(self, tokens: Sequence[XlaOp]) -> XlaOp:
        """A token that waits for all of `tokens`."""
    def approx_top_k(
        self,
        operands: Sequence[Operand],
        init_values: Sequence[Operand],
        top_k: int,
        reduction_dim: int,
        comparator: ComputationLike,
        recall_target: float = 0.9,
        aggregate_to_topk: bool = True,
        reduction_input_size_override: int = -1,
    ) -> XlaOp:
        """The first `top_k` elements in the order of the comparator, exactly, which is an allowed approximation: a
        tuple with one array per operand. Without aggregation there are as many elements as
        ApproxTopKReductionOutputSize says."""
    def approx_top_k_fallback(
        self,
        operands: Sequence[Operand],
        init_values: Sequence[Operand],
        top_k: int,
        reduction_dim: int,
        comparator: ComputationLike,
        recall_target: float = 0.9,
        aggregate_to_topk: bool = True,
        reduction_input_size_override: int = -1,
    ) -> XlaOp:
        """ApproxTopK by sorting, which is how ApproxTopK is done here anyway."""
    def call(self, computation: ComputationLike, operands: Sequence[Operand] = ()) -> XlaOp:
        """The result of `computation` for the operands; there may be none."""
    def concat_in_dim(self, operands: Sequence[Operand], dimension: int) -> XlaOp:
        """The operands joined along `dimension`, in order."""
    def concatenate(self, operands: Sequence[Operand], dimension: int) -> XlaOp:
        """The operands joined along `dimension`, in order."""
    def constant(self, literal: Any) -> XlaOp:
        """A constant: a numpy array or scalar in its own dtype, a tuple of such, or a Python scalar."""
    def constant_literal(self, literal: Any) -> XlaOp:
        """Constant, under its other name."""
    def create_token(self) -> XlaOp:
        """A fresh token."""
    def custom_call(
        self,
        call_target_name: bytes | str,
        operands: Sequence[Operand],
        shape: Shape,
        opaque: bytes | str = b"",
        has_side_effect: bool = False,
        schedule: Any = None,
        api_version: Any = CustomCallApiVersion.ORIGINAL,
    ) -> XlaOp:
        """Calls an external function by name; the result has `shape`. There is one schedule, so `schedule` is not
        read."""
    def custom_call_with_aliasing(
        self,
        call_target_name: bytes | str,
        operands: Sequence[Operand],
        shape_with_layout: Shape,
        operand_shapes_with_layout: Sequence[Shape],
        opaque: bytes | str = b"",
        has_side_effect: bool = False,
        output_operand_aliasing: Sequence[Any] = (),
        literal: None = None,
        schedule: Any = None,
        api_version: Any = CustomCallApiVersion.ORIGINAL,
    ) -> XlaOp:
        """CustomCallWithLayout whose outputs live in operands: pairs (output index, (operand number, operand
        index))."""
    def custom_call_with_computation(
        self,
        call_target_name: bytes | str,
        operands: Sequence[Operand],
        computation: ComputationLike,
        shape: Shape,
        opaque: bytes | str = b"",
        has_side_effect: bool = False,
        output_operand_aliasing: Sequence[Any] = (),
        literal: None = None,
        schedule: Any = None,
        api_version: Any = CustomCallApiVersion.ORIGINAL,
    ) -> XlaOp:
        """CustomCall with a computation for the target; a Python function is recorded for the shapes of the
        operands."""
    def custom_call_with_layout(
        self,
        call_target_name: bytes | str,
        operands: Sequence[Operand],
        shape_with_layout: Shape,
        operand_shapes_with_layout: Sequence[Shape],
        opaque: bytes | str = b"",
        has_side_effect: bool = False,
        schedule: Any = None,
        api_version: Any = CustomCallApiVersion.ORIGINAL,
    ) -> XlaOp:
        """CustomCall whose target wants its operands and result in the layouts of the shapes."""
    def infeed(self, shape: Shape, config: str = "") -> XlaOp:
        """Reads one item of `shape` from the device's infeed. An empty tuple reads nothing."""
    def iota(self, shape: Any, iota_dimension: int | None = None, *, size: int | None = None) -> XlaOp:
        """0, 1, 2 ... along a dimension: `Iota(builder, shape, iota_dimension)`, or `Iota(builder, element_type,
        size)`."""
    def make_tuple(self, elements: Sequence[Operand]) -> XlaOp:
        """A tuple of the elements, which may be tuples and tokens too."""
    def map(
        self,
        operands: Sequence[Operand],
        computation: ComputationLike,
        dimensions: Integers | None = None,
        static_operands: Sequence[XlaOp] = (),
    ) -> XlaOp:
        """Applies a scalar computation at every index; `dimensions`, if given, are all dimensions in order."""
    def partition_id(self) -> XlaOp:
        """The partition that this process is, as u32."""
    def recv(self, shape: Shape, channel: Any) -> XlaOp:
        """Receives data of `shape` from a channel."""
    def reduce(
        self, operands: Operands, init_values: Operands, computation: ComputationLike, dimensions_to_reduce: Integers
    ) -> XlaOp:
        """Folds dimensions with `computation`, from initial values: `Reduce(builder, operands, init_values,
        computation, dimensions)`, or `Reduce(operand, init_value, computation, dimensions)` for one operand."""
    def replica_id(self) -> XlaOp:
        """The replica that this process is, as u32."""
    def rng_get_and_update_state(self, delta: int = 1) -> XlaOp:
        """The key and the counter of the running program's own random numbers, as u64[2]; each execution gets
        others."""
    def sort(
        self,
        operands: Operands,
        comparator: ComputationLike | None = None,
        dimension: int = -1,
        is_stable: bool = False,
    ) -> XlaOp:
        """Sorts along a dimension: `Sort(builder, operands, comparator, dimension, is_stable)`, or in the older forms
        `Sort(operand, dimension=...)` and `Sort(keys, values, dimension=...)`."""
    def tuple(self, elements: Sequence[Operand]) -> XlaOp:
        """A tuple of the elements, which may be tuples and tokens too."""
