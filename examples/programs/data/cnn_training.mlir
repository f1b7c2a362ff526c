module @jit_convolutional_training attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<256x10xf32>, %arg1: tensor<3x3x1x8xf32>, %arg2: tensor<3x3x8x16xf32>, %arg3: tensor<16xf32>, %arg4: tensor<16xf32>, %arg5: tensor<16x16x16x1xf32>, %arg6: tensor<16xi32>) -> (tensor<f32> {jax.result_info = "result['loss']"}, tensor<256x10xf32> {jax.result_info = "result['weights']['dense']"}, tensor<3x3x1x8xf32> {jax.result_info = "result['weights']['first']"}, tensor<3x3x8x16xf32> {jax.result_info = "result['weights']['second']"}, tensor<16xf32> {jax.result_info = "result['weights']['shift']"}, tensor<16xf32> {jax.result_info = "result['weights']['stretch']"}) {
    %0 = stablehlo.convolution(%arg5, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<16x16x16x1xf32>, tensor<3x3x1x8xf32>) -> tensor<16x16x16x8xf32>
    %1 = call @relu(%0) : (tensor<16x16x16x8xf32>) -> tensor<16x16x16x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16x16x8xf32>
    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<16x16x16x8xf32>, tensor<16x16x16x8xf32>) -> tensor<16x16x16x8xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x16x16x8xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<f32>
    %6 = "stablehlo.reduce_window"(%1, %5) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %134 = stablehlo.maximum %arg7, %arg8 : tensor<f32>
      stablehlo.return %134 : tensor<f32>
    }) : (tensor<16x16x16x8xf32>, tensor<f32>) -> tensor<16x8x8x8xf32>
    %7 = stablehlo.convolution(%6, %arg2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<16x8x8x8xf32>, tensor<3x3x8x16xf32>) -> tensor<16x8x8x16xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_2) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %cst_3 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %10 = stablehlo.divide %8, %9 : tensor<16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %11:5 = call @_var(%7, %c) : (tensor<16x8x8x16xf32>, tensor<i32>) -> (tensor<16xf32>, tensor<16x8x8x16xf32>, tensor<f32>, tensor<i1>, tensor<16xf32>)
    %12 = stablehlo.broadcast_in_dim %10, dims = [3] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<16x8x8x16xf32>
    %14 = stablehlo.subtract %7, %13 : tensor<16x8x8x16xf32>
    %cst_4 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %16 = stablehlo.add %11#0, %15 : tensor<16xf32>
    %17 = stablehlo.rsqrt %16 : tensor<16xf32>
    %18 = stablehlo.divide %17, %16 : tensor<16xf32>
    %cst_5 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %20 = stablehlo.multiply %19, %18 : tensor<16xf32>
    %21 = stablehlo.broadcast_in_dim %17, dims = [3] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<16x8x8x16xf32>
    %23 = stablehlo.multiply %14, %22 : tensor<16x8x8x16xf32>
    %24 = stablehlo.broadcast_in_dim %arg4, dims = [3] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<16x8x8x16xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<16x8x8x16xf32>
    %27 = stablehlo.broadcast_in_dim %arg3, dims = [3] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<16x8x8x16xf32>
    %29 = stablehlo.add %26, %28 : tensor<16x8x8x16xf32>
    %30 = stablehlo.multiply %29, %29 : tensor<16x8x8x16xf32>
    %31 = stablehlo.multiply %30, %29 : tensor<16x8x8x16xf32>
    %32 = stablehlo.multiply %29, %29 : tensor<16x8x8x16xf32>
    %cst_6 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %34 = stablehlo.multiply %33, %32 : tensor<16x8x8x16xf32>
    %cst_7 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %36 = stablehlo.multiply %35, %31 : tensor<16x8x8x16xf32>
    %37 = stablehlo.add %29, %36 : tensor<16x8x8x16xf32>
    %cst_8 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %39 = stablehlo.multiply %38, %37 : tensor<16x8x8x16xf32>
    %40 = stablehlo.tanh %39 : tensor<16x8x8x16xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %42 = stablehlo.subtract %41, %40 : tensor<16x8x8x16xf32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %44 = stablehlo.add %43, %40 : tensor<16x8x8x16xf32>
    %cst_11 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %46 = stablehlo.multiply %45, %44 : tensor<16x8x8x16xf32>
    %47 = stablehlo.multiply %29, %46 : tensor<16x8x8x16xf32>
    %cst_12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<f32>
    %49 = "stablehlo.reduce_window"(%47, %48) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %134 = stablehlo.maximum %arg7, %arg8 : tensor<f32>
      stablehlo.return %134 : tensor<f32>
    }) : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16x4x4x16xf32>
    %50 = stablehlo.reshape %49 : (tensor<16x4x4x16xf32>) -> tensor<16x256xf32>
    %51 = stablehlo.dot_general %50, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x256xf32>, tensor<256x10xf32>) -> tensor<16x10xf32>
    %52:3 = call @log_softmax(%51) : (tensor<16x10xf32>) -> (tensor<16x10xf32>, tensor<16x10xf32>, tensor<16x1xf32>)
    %53 = stablehlo.broadcast_in_dim %arg6, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %54:2 = call @take_along_axis(%52#0, %53) : (tensor<16x10xf32>, tensor<16x1xi32>) -> (tensor<16x1xf32>, tensor<16x1x1xi32>)
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %55 = stablehlo.reduce(%54#0 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_14 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %56 = stablehlo.divide %55, %cst_14 : tensor<f32>
    %57 = stablehlo.negate %56 : tensor<f32>
    %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %58 = stablehlo.negate %cst_15 : tensor<f32>
    %cst_16 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %59 = stablehlo.divide %58, %cst_16 : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %59, dims = [] : (tensor<f32>) -> tensor<16x1xf32>
    %61 = call @take_along_axis_0(%54#1, %60) : (tensor<16x1x1xi32>, tensor<16x1xf32>) -> tensor<16x10xf32>
    %62 = call @log_softmax_1(%52#1, %52#2, %61) : (tensor<16x10xf32>, tensor<16x1xf32>, tensor<16x10xf32>) -> tensor<16x10xf32>
    %63 = stablehlo.dot_general %62, %50, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x10xf32>, tensor<16x256xf32>) -> tensor<10x256xf32>
    %64 = stablehlo.transpose %63, dims = [1, 0] : (tensor<10x256xf32>) -> tensor<256x10xf32>
    %65 = stablehlo.dot_general %62, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x10xf32>, tensor<256x10xf32>) -> tensor<16x256xf32>
    %66 = stablehlo.reshape %65 : (tensor<16x256xf32>) -> tensor<16x4x4x16xf32>
    %cst_17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %67 = stablehlo.pad %47, %cst_17, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16x8x8x16xf32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %68 = "stablehlo.select_and_scatter"(%67, %66, %cst_18) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %134 = stablehlo.compare GE, %arg7, %arg8, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %134 : tensor<i1>
    }, {
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %134 = stablehlo.add %arg7, %arg8 : tensor<f32>
      stablehlo.return %134 : tensor<f32>
    }) : (tensor<16x8x8x16xf32>, tensor<16x4x4x16xf32>, tensor<f32>) -> tensor<16x8x8x16xf32>
    %69 = stablehlo.slice %68 [0:16, 0:8, 0:8, 0:16] : (tensor<16x8x8x16xf32>) -> tensor<16x8x8x16xf32>
    %70 = stablehlo.multiply %29, %69 : tensor<16x8x8x16xf32>
    %71 = stablehlo.multiply %69, %46 : tensor<16x8x8x16xf32>
    %cst_19 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %73 = stablehlo.multiply %72, %70 : tensor<16x8x8x16xf32>
    %74 = stablehlo.multiply %73, %42 : tensor<16x8x8x16xf32>
    %75 = stablehlo.multiply %74, %40 : tensor<16x8x8x16xf32>
    %76 = stablehlo.add %74, %75 : tensor<16x8x8x16xf32>
    %cst_20 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %78 = stablehlo.multiply %77, %76 : tensor<16x8x8x16xf32>
    %79 = stablehlo.add %71, %78 : tensor<16x8x8x16xf32>
    %cst_21 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %81 = stablehlo.multiply %80, %78 : tensor<16x8x8x16xf32>
    %82 = stablehlo.multiply %81, %34 : tensor<16x8x8x16xf32>
    %83 = stablehlo.add %79, %82 : tensor<16x8x8x16xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %84 = stablehlo.reduce(%83 init: %cst_22) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %85 = stablehlo.reshape %84 : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %86 = stablehlo.reduce(%85 init: %cst_23) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %87 = stablehlo.multiply %23, %83 : tensor<16x8x8x16xf32>
    %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %88 = stablehlo.reduce(%87 init: %cst_24) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %89 = stablehlo.reshape %88 : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %90 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<16x8x8x16xf32>
    %91 = stablehlo.multiply %83, %90 : tensor<16x8x8x16xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %92 = stablehlo.reduce(%89 init: %cst_25) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %93 = stablehlo.multiply %14, %91 : tensor<16x8x8x16xf32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %94 = stablehlo.reduce(%93 init: %cst_26) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %95 = stablehlo.reshape %94 : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %96 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<16x8x8x16xf32>
    %97 = stablehlo.multiply %91, %96 : tensor<16x8x8x16xf32>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %98 = stablehlo.reduce(%95 init: %cst_27) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %99 = stablehlo.multiply %98, %20 : tensor<16xf32>
    %100 = stablehlo.negate %97 : tensor<16x8x8x16xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %101 = stablehlo.reduce(%100 init: %cst_28) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %102 = stablehlo.reshape %101 : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %103 = stablehlo.reduce(%102 init: %cst_29) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %104 = call @_var_2(%11#1, %11#2, %11#3, %11#4, %99) : (tensor<16x8x8x16xf32>, tensor<f32>, tensor<i1>, tensor<16xf32>, tensor<16xf32>) -> tensor<16x8x8x16xf32>
    %105 = stablehlo.add %97, %104 : tensor<16x8x8x16xf32>
    %cst_30 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %106 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %107 = stablehlo.divide %103, %106 : tensor<16xf32>
    %108 = stablehlo.broadcast_in_dim %107, dims = [3] : (tensor<16xf32>) -> tensor<16x8x8x16xf32>
    %109 = stablehlo.add %105, %108 : tensor<16x8x8x16xf32>
    %110 = stablehlo.convolution(%6, %109) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<16x8x8x8xf32>, tensor<16x8x8x16xf32>) -> tensor<3x3x8x16xf32>
    %111 = stablehlo.reverse %arg2, dims = [0, 1] : tensor<3x3x8x16xf32>
    %112 = stablehlo.convolution(%109, %111) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<16x8x8x16xf32>, tensor<3x3x8x16xf32>) -> tensor<16x8x8x8xf32>
    %cst_31 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %113 = stablehlo.pad %1, %cst_31, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<16x16x16x8xf32>, tensor<f32>) -> tensor<16x16x16x8xf32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %114 = "stablehlo.select_and_scatter"(%113, %112, %cst_32) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %134 = stablehlo.compare GE, %arg7, %arg8, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %134 : tensor<i1>
    }, {
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %134 = stablehlo.add %arg7, %arg8 : tensor<f32>
      stablehlo.return %134 : tensor<f32>
    }) : (tensor<16x16x16x8xf32>, tensor<16x8x8x8xf32>, tensor<f32>) -> tensor<16x16x16x8xf32>
    %115 = stablehlo.slice %114 [0:16, 0:16, 0:16, 0:8] : (tensor<16x16x16x8xf32>) -> tensor<16x16x16x8xf32>
    %cst_33 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %116 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<16x16x16x8xf32>
    %117 = stablehlo.select %3, %115, %116 : tensor<16x16x16x8xi1>, tensor<16x16x16x8xf32>
    %118 = stablehlo.convolution(%arg5, %117) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<16x16x16x1xf32>, tensor<16x16x16x8xf32>) -> tensor<3x3x1x8xf32>
    %cst_34 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %119 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<256x10xf32>
    %120 = stablehlo.multiply %119, %64 : tensor<256x10xf32>
    %121 = stablehlo.subtract %arg0, %120 : tensor<256x10xf32>
    %cst_35 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %122 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %123 = stablehlo.multiply %122, %118 : tensor<3x3x1x8xf32>
    %124 = stablehlo.subtract %arg1, %123 : tensor<3x3x1x8xf32>
    %cst_36 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<3x3x8x16xf32>
    %126 = stablehlo.multiply %125, %110 : tensor<3x3x8x16xf32>
    %127 = stablehlo.subtract %arg2, %126 : tensor<3x3x8x16xf32>
    %cst_37 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %128 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %129 = stablehlo.multiply %128, %86 : tensor<16xf32>
    %130 = stablehlo.subtract %arg3, %129 : tensor<16xf32>
    %cst_38 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %131 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %132 = stablehlo.multiply %131, %92 : tensor<16xf32>
    %133 = stablehlo.subtract %arg4, %132 : tensor<16xf32>
    return %57, %121, %124, %127, %130, %133 : tensor<f32>, tensor<256x10xf32>, tensor<3x3x1x8xf32>, tensor<3x3x8x16xf32>, tensor<16xf32>, tensor<16xf32>
  }
  func.func private @relu(%arg0: tensor<16x16x16x8xf32>) -> tensor<16x16x16x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16x16x8xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<16x16x16x8xf32>
    return %1 : tensor<16x16x16x8xf32>
  }
  func.func private @_var(%arg0: tensor<16x8x8x16xf32>, %arg1: tensor<i32>) -> (tensor<16xf32>, tensor<16x8x8x16xf32>, tensor<f32>, tensor<i1>, tensor<16xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [3] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %cst_0 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x1x1x16xf32>
    %3 = stablehlo.divide %1, %2 : tensor<1x1x1x16xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<16x8x8x16xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<16x8x8x16xf32>
    %6 = chlo.square %5 : tensor<16x8x8x16xf32> -> tensor<16x8x8x16xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x8x8x16xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<16x8x8x16xf32>
    %9 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %10 = stablehlo.subtract %cst_2, %9 : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%6 init: %cst_3) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %12 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %13 = stablehlo.divide %11, %12 : tensor<16xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.compare GT, %10, %cst_4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_5 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %15:2 = call @_where(%14, %13, %cst_5) : (tensor<i1>, tensor<16xf32>, tensor<f32>) -> (tensor<16xf32>, tensor<16xf32>)
    return %15#0, %8, %10, %14, %15#1 : tensor<16xf32>, tensor<16x8x8x16xf32>, tensor<f32>, tensor<i1>, tensor<16xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<16xf32>, %arg2: tensor<f32>) -> (tensor<16xf32>, tensor<16xf32>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    return %2, %3 : tensor<16xf32>, tensor<16xf32>
  }
  func.func private @log_softmax(%arg0: tensor<16x10xf32>) -> (tensor<16x10xf32>, tensor<16x10xf32>, tensor<16x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<16x10xf32>, tensor<f32>) -> tensor<16xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<16xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x10xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<16x10xf32>
    %6 = stablehlo.exponential %5 : tensor<16x10xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<16x10xf32>, tensor<f32>) -> tensor<16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
    %9 = stablehlo.log %8 : tensor<16x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x10xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<16x10xf32>
    return %11, %6, %8 : tensor<16x10xf32>, tensor<16x10xf32>, tensor<16x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<16x10xf32>, %arg1: tensor<16x1xi32>) -> (tensor<16x1xf32>, tensor<16x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %c_0 = stablehlo.constant dense<10> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<16x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<16x1xi1>, tensor<16x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<16x1xi32>) -> tensor<16x1x1xi32>
    %c_1 = stablehlo.constant dense<9> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<16x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<16x1x1xi32>, tensor<16x1x1xi32>) -> tensor<16x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<16x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<16x1x1xi32>, tensor<16x1x1xi32>) -> tensor<16x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<16x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<16x1x1xi1>, tensor<i1>) -> tensor<16x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<16x10xf32>, tensor<16x1x1xi32>) -> tensor<16x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<16x1xi1>, tensor<16x1xf32>
    return %15, %5 : tensor<16x1xf32>, tensor<16x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<16x1x1xi32>, %arg1: tensor<16x1xf32>) -> tensor<16x10xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x10xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<16x10xf32>, tensor<16x1x1xi32>, tensor<16x1xf32>) -> tensor<16x10xf32>
    return %1 : tensor<16x10xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<16x10xf32>, %arg1: tensor<16x1xf32>, %arg2: tensor<16x10xf32>) -> tensor<16x10xf32> {
    %0 = stablehlo.negate %arg2 : tensor<16x10xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<16x10xf32>, tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.reshape %1 : (tensor<16xf32>) -> tensor<16x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<16x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<16x1xf32>, tensor<f32>) -> tensor<16xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<16xf32>) -> tensor<16x10xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<16x10xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<16x10xf32>
    return %7 : tensor<16x10xf32>
  }
  func.func private @_var_2(%arg0: tensor<16x8x8x16xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<16xf32>, %arg4: tensor<16xf32>) -> tensor<16x8x8x16xf32> {
    %0 = call @_where_3(%arg2, %arg3, %arg4) : (tensor<i1>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.divide %0, %1 : tensor<16xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [3] : (tensor<16xf32>) -> tensor<16x8x8x16xf32>
    %4 = stablehlo.multiply %3, %arg0 : tensor<16x8x8x16xf32>
    %5 = stablehlo.negate %4 : tensor<16x8x8x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%5 init: %cst) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %7 = stablehlo.reshape %6 : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %cst_0 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x1x1x16xf32>
    %9 = stablehlo.divide %7, %8 : tensor<1x1x1x16xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_1) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [3] : (tensor<16xf32>) -> tensor<16x8x8x16xf32>
    %12 = stablehlo.add %4, %11 : tensor<16x8x8x16xf32>
    return %12 : tensor<16x8x8x16xf32>
  }
  func.func private @_where_3(%arg0: tensor<i1>, %arg1: tensor<16xf32>, %arg2: tensor<16xf32>) -> tensor<16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1 = stablehlo.select %arg0, %arg2, %0 : tensor<i1>, tensor<16xf32>
    return %1 : tensor<16xf32>
  }
}
