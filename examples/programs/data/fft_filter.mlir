module @jit_filtering attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x4096xf32>, %arg1: tensor<65xf32>) -> (tensor<4x4096xf32> {jax.result_info = "result['clean']"}, tensor<4x4096xf32> {jax.result_info = "result['smooth']"}, tensor<4x2049xf32> {jax.result_info = "result['strength']"}) {
    %0 = call @convolve(%arg0, %arg1) : (tensor<4x4096xf32>, tensor<65xf32>) -> tensor<4x4096xf32>
    %1 = call @fft(%arg0) : (tensor<4x4096xf32>) -> tensor<4x2049xcomplex<f32>>
    %2 = stablehlo.abs %1 : (tensor<4x2049xcomplex<f32>>) -> tensor<4x2049xf32>
    %3 = call @median(%2) : (tensor<4x2049xf32>) -> tensor<4x1xf32>
    %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %5 = stablehlo.multiply %4, %3 : tensor<4x1xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x2049xf32>
    %7 = stablehlo.subtract %2, %6 : tensor<4x2049xf32>
    %8 = stablehlo.negate %7 : tensor<4x2049xf32>
    %9 = stablehlo.exponential %8 : tensor<4x2049xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x2049xf32>
    %11 = stablehlo.add %10, %9 : tensor<4x2049xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x2049xf32>
    %13 = stablehlo.divide %12, %11 : tensor<4x2049xf32>
    %14 = stablehlo.convert %13 : (tensor<4x2049xf32>) -> tensor<4x2049xcomplex<f32>>
    %15 = stablehlo.multiply %1, %14 : tensor<4x2049xcomplex<f32>>
    %16 = call @fft_0(%15) : (tensor<4x2049xcomplex<f32>>) -> tensor<4x4096xf32>
    return %16, %0, %2 : tensor<4x4096xf32>, tensor<4x4096xf32>, tensor<4x2049xf32>
  }
  func.func private @convolve(%arg0: tensor<4x4096xf32>, %arg1: tensor<65xf32>) -> tensor<4x4096xf32> {
    %0 = call @_conv(%arg0, %arg1) : (tensor<4x4096xf32>, tensor<65xf32>) -> tensor<4x4096xf32>
    return %0 : tensor<4x4096xf32>
  }
  func.func private @_conv(%arg0: tensor<4x4096xf32>, %arg1: tensor<65xf32>) -> tensor<4x4096xf32> {
    %0 = call @_flip(%arg1) : (tensor<65xf32>) -> tensor<65xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 3] : (tensor<4x4096xf32>) -> tensor<4x1x1x4096xf32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [2] : (tensor<65xf32>) -> tensor<1x1x65xf32>
    %3 = stablehlo.reshape %1 : (tensor<4x1x1x4096xf32>) -> tensor<4x1x4096xf32>
    %4 = stablehlo.convolution(%3, %2) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[32, 32]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x1x4096xf32>, tensor<1x1x65xf32>) -> tensor<4x1x4096xf32>
    %5 = stablehlo.reshape %4 : (tensor<4x1x4096xf32>) -> tensor<4x1x1x4096xf32>
    %6 = stablehlo.reshape %5 : (tensor<4x1x1x4096xf32>) -> tensor<4x4096xf32>
    return %6 : tensor<4x4096xf32>
  }
  func.func private @_flip(%arg0: tensor<65xf32>) -> tensor<65xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<65xf32>
    return %0 : tensor<65xf32>
  }
  func.func private @fft(%arg0: tensor<4x4096xf32>) -> tensor<4x2049xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [4096] : (tensor<4x4096xf32>) -> tensor<4x2049xcomplex<f32>>
    return %0 : tensor<4x2049xcomplex<f32>>
  }
  func.func private @median(%arg0: tensor<4x2049xf32>) -> tensor<4x1xf32> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = call @quantile(%arg0, %cst) : (tensor<4x2049xf32>, tensor<f32>) -> tensor<4x1xf32>
    return %0 : tensor<4x1xf32>
  }
  func.func private @quantile(%arg0: tensor<4x2049xf32>, %arg1: tensor<f32>) -> tensor<4x1xf32> {
    %0 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<4x2049xf32>, tensor<4x2049xf32>) -> tensor<4x2049xi1>
    %c = stablehlo.constant dense<false> : tensor<i1>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.or across dimensions = [1] : (tensor<4x2049xi1>, tensor<i1>) -> tensor<4xi1>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<4xi1>) -> tensor<4x1xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %3 = call @_where(%2, %cst, %arg0) : (tensor<4x1xi1>, tensor<f32>, tensor<4x2049xf32>) -> tensor<4x2049xf32>
    %4 = "stablehlo.sort"(%3) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %24 = stablehlo.compare EQ, %arg2, %cst_10, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %25 = stablehlo.select %24, %cst_11, %arg2 : tensor<i1>, tensor<f32>
      %26 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_12 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %27 = stablehlo.select %26, %cst_12, %25 : tensor<i1>, tensor<f32>
      %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %28 = stablehlo.compare EQ, %arg3, %cst_13, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %29 = stablehlo.select %28, %cst_14, %arg3 : tensor<i1>, tensor<f32>
      %30 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_15 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %31 = stablehlo.select %30, %cst_15, %29 : tensor<i1>, tensor<f32>
      %32 = stablehlo.compare LT, %27, %31, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %32 : tensor<i1>
    }) : (tensor<4x2049xf32>) -> tensor<4x2049xf32>
    %cst_0 = stablehlo.constant dense<2.049000e+03> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.subtract %cst_0, %cst_1 : tensor<f32>
    %6 = stablehlo.multiply %arg1, %5 : tensor<f32>
    %7 = stablehlo.floor %6 : tensor<f32>
    %8 = stablehlo.ceil %6 : tensor<f32>
    %9 = stablehlo.subtract %6, %7 : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.subtract %cst_2, %9 : tensor<f32>
    %cst_3 = stablehlo.constant dense<2.049000e+03> : tensor<f32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %11 = stablehlo.subtract %cst_3, %cst_4 : tensor<f32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.clamp %cst_5, %7, %11 : tensor<f32>
    %cst_6 = stablehlo.constant dense<2.049000e+03> : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.subtract %cst_6, %cst_7 : tensor<f32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.clamp %cst_8, %8, %13 : tensor<f32>
    %15 = stablehlo.convert %12 : (tensor<f32>) -> tensor<i32>
    %16 = stablehlo.convert %14 : (tensor<f32>) -> tensor<i32>
    %17 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %18 = "stablehlo.gather"(%4, %17) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 4, 1>}> : (tensor<4x2049xf32>, tensor<1xi32>) -> tensor<4x1xf32>
    %19 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %20 = "stablehlo.gather"(%4, %19) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 4, 1>}> : (tensor<4x2049xf32>, tensor<1xi32>) -> tensor<4x1xf32>
    %21 = stablehlo.add %18, %20 : tensor<4x1xf32>
    %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %23 = stablehlo.multiply %21, %22 : tensor<4x1xf32>
    return %23 : tensor<4x1xf32>
  }
  func.func private @_where(%arg0: tensor<4x1xi1>, %arg1: tensor<f32>, %arg2: tensor<4x2049xf32>) -> tensor<4x2049xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<4x1xi1>) -> tensor<4x2049xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x2049xf32>
    %3 = stablehlo.select %1, %2, %arg2 : tensor<4x2049xi1>, tensor<4x2049xf32>
    return %3 : tensor<4x2049xf32>
  }
  func.func private @fft_0(%arg0: tensor<4x2049xcomplex<f32>>) -> tensor<4x4096xf32> {
    %0 = stablehlo.fft %arg0, type = IRFFT, length = [4096] : (tensor<4x2049xcomplex<f32>>) -> tensor<4x4096xf32>
    return %0 : tensor<4x4096xf32>
  }
}
