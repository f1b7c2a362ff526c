module @jit_transformer attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x96xf32>, %arg1: tensor<2x32xf32>, %arg2: tensor<128x32xf32>, %arg3: tensor<32x32xf32>, %arg4: tensor<32x128xf32>, %arg5: tensor<32x96xf32>, %arg6: tensor<2x32xf32>, %arg7: tensor<128x32xf32>, %arg8: tensor<32x32xf32>, %arg9: tensor<32x128xf32>, %arg10: tensor<32x64xf32>, %arg11: tensor<32x32xf32>, %arg12: tensor<64x32xf32>, %arg13: tensor<4x32xi32>) -> (tensor<4x32x64xf32> {jax.result_info = "result['logits']"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x32xi32>
    %1 = stablehlo.compare LT, %arg13, %0, SIGNED : (tensor<4x32xi32>, tensor<4x32xi32>) -> tensor<4x32xi1>
    %c_0 = stablehlo.constant dense<64> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x32xi32>
    %3 = stablehlo.add %arg13, %2 : tensor<4x32xi32>
    %4 = stablehlo.select %1, %3, %arg13 : tensor<4x32xi1>, tensor<4x32xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<4x32xi32>) -> tensor<4x32x1xi32>
    %6 = "stablehlo.gather"(%arg12, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}> : (tensor<64x32xf32>, tensor<4x32x1xi32>) -> tensor<4x32x32xf32>
    %7 = stablehlo.broadcast_in_dim %arg11, dims = [1, 2] : (tensor<32x32xf32>) -> tensor<1x32x32xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x32x32xf32>) -> tensor<4x32x32xf32>
    %9 = stablehlo.add %6, %8 : tensor<4x32x32xf32>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %10 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %11 = call @tril(%10) : (tensor<32x32xi1>) -> tensor<32x32xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.reduce(%9 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %15 = stablehlo.divide %13, %14 : tensor<4x32x1xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %17 = stablehlo.subtract %9, %16 : tensor<4x32x32xf32>
    %18 = stablehlo.multiply %17, %17 : tensor<4x32x32xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%18 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_4 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %22 = stablehlo.divide %20, %21 : tensor<4x32x1xf32>
    %cst_5 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %24 = stablehlo.add %22, %23 : tensor<4x32x1xf32>
    %25 = stablehlo.rsqrt %24 : tensor<4x32x1xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %27 = stablehlo.multiply %17, %26 : tensor<4x32x32xf32>
    %28 = stablehlo.slice %arg1 [0:1, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %29 = stablehlo.reshape %28 : (tensor<1x32xf32>) -> tensor<32xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %32 = stablehlo.multiply %27, %31 : tensor<4x32x32xf32>
    %33 = stablehlo.dot_general %32, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x96xf32>) -> tensor<4x32x96xf32>
    %34 = stablehlo.slice %33 [0:4, 0:32, 0:32] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %35 = stablehlo.slice %33 [0:4, 0:32, 32:64] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %36 = stablehlo.slice %33 [0:4, 0:32, 64:96] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %37 = stablehlo.reshape %34 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %38 = stablehlo.transpose %37, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %39 = stablehlo.reshape %35 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %40 = stablehlo.transpose %39, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %41 = stablehlo.reshape %36 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %42 = stablehlo.transpose %41, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %43 = stablehlo.transpose %40, dims = [0, 1, 3, 2] : (tensor<4x4x32x8xf32>) -> tensor<4x4x8x32xf32>
    %44 = stablehlo.dot_general %38, %43, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x8x32xf32>) -> tensor<4x4x32x32xf32>
    %cst_6 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %46 = stablehlo.multiply %44, %45 : tensor<4x4x32x32xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %47 = call @_where(%11, %46, %cst_7) : (tensor<32x32xi1>, tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32x32xf32>
    %cst_8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %48 = stablehlo.reduce(%47 init: %cst_8) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %50 = stablehlo.maximum %49, %48 : tensor<4x4x32xf32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %53 = stablehlo.subtract %47, %52 : tensor<4x4x32x32xf32>
    %54 = stablehlo.exponential %53 : tensor<4x4x32x32xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %55 = stablehlo.reduce(%54 init: %cst_10) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %58 = stablehlo.divide %54, %57 : tensor<4x4x32x32xf32>
    %59 = stablehlo.dot_general %58, %42, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x8xf32>
    %60 = stablehlo.transpose %59, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %61 = stablehlo.reshape %60 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %62 = stablehlo.dot_general %61, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x32xf32>) -> tensor<4x32x32xf32>
    %63 = stablehlo.add %9, %62 : tensor<4x32x32xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %64 = stablehlo.reduce(%63 init: %cst_11) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_12 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %67 = stablehlo.divide %65, %66 : tensor<4x32x1xf32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %69 = stablehlo.subtract %63, %68 : tensor<4x32x32xf32>
    %70 = stablehlo.multiply %69, %69 : tensor<4x32x32xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %71 = stablehlo.reduce(%70 init: %cst_13) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_14 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %74 = stablehlo.divide %72, %73 : tensor<4x32x1xf32>
    %cst_15 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %76 = stablehlo.add %74, %75 : tensor<4x32x1xf32>
    %77 = stablehlo.rsqrt %76 : tensor<4x32x1xf32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %79 = stablehlo.multiply %69, %78 : tensor<4x32x32xf32>
    %80 = stablehlo.slice %arg1 [1:2, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %81 = stablehlo.reshape %80 : (tensor<1x32xf32>) -> tensor<32xf32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %84 = stablehlo.multiply %79, %83 : tensor<4x32x32xf32>
    %85 = stablehlo.dot_general %84, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x128xf32>) -> tensor<4x32x128xf32>
    %86 = stablehlo.multiply %85, %85 : tensor<4x32x128xf32>
    %87 = stablehlo.multiply %86, %85 : tensor<4x32x128xf32>
    %cst_16 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %88 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %89 = stablehlo.multiply %88, %87 : tensor<4x32x128xf32>
    %90 = stablehlo.add %85, %89 : tensor<4x32x128xf32>
    %cst_17 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %92 = stablehlo.multiply %91, %90 : tensor<4x32x128xf32>
    %93 = stablehlo.tanh %92 : tensor<4x32x128xf32>
    %cst_18 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %94 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %95 = stablehlo.add %94, %93 : tensor<4x32x128xf32>
    %cst_19 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %97 = stablehlo.multiply %96, %95 : tensor<4x32x128xf32>
    %98 = stablehlo.multiply %85, %97 : tensor<4x32x128xf32>
    %99 = stablehlo.dot_general %98, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<128x32xf32>) -> tensor<4x32x32xf32>
    %100 = stablehlo.add %63, %99 : tensor<4x32x32xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %101 = stablehlo.reduce(%100 init: %cst_20) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %102 = stablehlo.broadcast_in_dim %101, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_21 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %104 = stablehlo.divide %102, %103 : tensor<4x32x1xf32>
    %105 = stablehlo.broadcast_in_dim %104, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %106 = stablehlo.subtract %100, %105 : tensor<4x32x32xf32>
    %107 = stablehlo.multiply %106, %106 : tensor<4x32x32xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %108 = stablehlo.reduce(%107 init: %cst_22) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %109 = stablehlo.broadcast_in_dim %108, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_23 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %111 = stablehlo.divide %109, %110 : tensor<4x32x1xf32>
    %cst_24 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %112 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %113 = stablehlo.add %111, %112 : tensor<4x32x1xf32>
    %114 = stablehlo.rsqrt %113 : tensor<4x32x1xf32>
    %115 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %116 = stablehlo.multiply %106, %115 : tensor<4x32x32xf32>
    %117 = stablehlo.slice %arg6 [0:1, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %118 = stablehlo.reshape %117 : (tensor<1x32xf32>) -> tensor<32xf32>
    %119 = stablehlo.broadcast_in_dim %118, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %121 = stablehlo.multiply %116, %120 : tensor<4x32x32xf32>
    %122 = stablehlo.dot_general %121, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x96xf32>) -> tensor<4x32x96xf32>
    %123 = stablehlo.slice %122 [0:4, 0:32, 0:32] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %124 = stablehlo.slice %122 [0:4, 0:32, 32:64] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %125 = stablehlo.slice %122 [0:4, 0:32, 64:96] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %126 = stablehlo.reshape %123 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %127 = stablehlo.transpose %126, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %128 = stablehlo.reshape %124 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %129 = stablehlo.transpose %128, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %130 = stablehlo.reshape %125 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %131 = stablehlo.transpose %130, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %132 = stablehlo.transpose %129, dims = [0, 1, 3, 2] : (tensor<4x4x32x8xf32>) -> tensor<4x4x8x32xf32>
    %133 = stablehlo.dot_general %127, %132, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x8x32xf32>) -> tensor<4x4x32x32xf32>
    %cst_25 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %134 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %135 = stablehlo.multiply %133, %134 : tensor<4x4x32x32xf32>
    %cst_26 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %136 = call @_where(%11, %135, %cst_26) : (tensor<32x32xi1>, tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32x32xf32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %137 = stablehlo.reduce(%136 init: %cst_27) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %cst_28 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %138 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %139 = stablehlo.maximum %138, %137 : tensor<4x4x32xf32>
    %140 = stablehlo.broadcast_in_dim %139, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %141 = stablehlo.broadcast_in_dim %140, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %142 = stablehlo.subtract %136, %141 : tensor<4x4x32x32xf32>
    %143 = stablehlo.exponential %142 : tensor<4x4x32x32xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %144 = stablehlo.reduce(%143 init: %cst_29) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %146 = stablehlo.broadcast_in_dim %145, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %147 = stablehlo.divide %143, %146 : tensor<4x4x32x32xf32>
    %148 = stablehlo.dot_general %147, %131, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x8xf32>
    %149 = stablehlo.transpose %148, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %150 = stablehlo.reshape %149 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %151 = stablehlo.dot_general %150, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x32xf32>) -> tensor<4x32x32xf32>
    %152 = stablehlo.add %100, %151 : tensor<4x32x32xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %153 = stablehlo.reduce(%152 init: %cst_30) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %154 = stablehlo.broadcast_in_dim %153, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_31 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %155 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %156 = stablehlo.divide %154, %155 : tensor<4x32x1xf32>
    %157 = stablehlo.broadcast_in_dim %156, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %158 = stablehlo.subtract %152, %157 : tensor<4x32x32xf32>
    %159 = stablehlo.multiply %158, %158 : tensor<4x32x32xf32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %160 = stablehlo.reduce(%159 init: %cst_32) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %161 = stablehlo.broadcast_in_dim %160, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_33 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %162 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %163 = stablehlo.divide %161, %162 : tensor<4x32x1xf32>
    %cst_34 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %164 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %165 = stablehlo.add %163, %164 : tensor<4x32x1xf32>
    %166 = stablehlo.rsqrt %165 : tensor<4x32x1xf32>
    %167 = stablehlo.broadcast_in_dim %166, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %168 = stablehlo.multiply %158, %167 : tensor<4x32x32xf32>
    %169 = stablehlo.slice %arg6 [1:2, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %170 = stablehlo.reshape %169 : (tensor<1x32xf32>) -> tensor<32xf32>
    %171 = stablehlo.broadcast_in_dim %170, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %172 = stablehlo.broadcast_in_dim %171, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %173 = stablehlo.multiply %168, %172 : tensor<4x32x32xf32>
    %174 = stablehlo.dot_general %173, %arg9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x128xf32>) -> tensor<4x32x128xf32>
    %175 = stablehlo.multiply %174, %174 : tensor<4x32x128xf32>
    %176 = stablehlo.multiply %175, %174 : tensor<4x32x128xf32>
    %cst_35 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %177 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %178 = stablehlo.multiply %177, %176 : tensor<4x32x128xf32>
    %179 = stablehlo.add %174, %178 : tensor<4x32x128xf32>
    %cst_36 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %180 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %181 = stablehlo.multiply %180, %179 : tensor<4x32x128xf32>
    %182 = stablehlo.tanh %181 : tensor<4x32x128xf32>
    %cst_37 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %183 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %184 = stablehlo.add %183, %182 : tensor<4x32x128xf32>
    %cst_38 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %185 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %186 = stablehlo.multiply %185, %184 : tensor<4x32x128xf32>
    %187 = stablehlo.multiply %174, %186 : tensor<4x32x128xf32>
    %188 = stablehlo.dot_general %187, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<128x32xf32>) -> tensor<4x32x32xf32>
    %189 = stablehlo.add %152, %188 : tensor<4x32x32xf32>
    %cst_39 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %190 = stablehlo.reduce(%189 init: %cst_39) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_40 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %192 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %193 = stablehlo.divide %191, %192 : tensor<4x32x1xf32>
    %194 = stablehlo.broadcast_in_dim %193, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %195 = stablehlo.subtract %189, %194 : tensor<4x32x32xf32>
    %196 = stablehlo.multiply %195, %195 : tensor<4x32x32xf32>
    %cst_41 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %197 = stablehlo.reduce(%196 init: %cst_41) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %198 = stablehlo.broadcast_in_dim %197, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_42 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %199 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %200 = stablehlo.divide %198, %199 : tensor<4x32x1xf32>
    %cst_43 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %201 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %202 = stablehlo.add %200, %201 : tensor<4x32x1xf32>
    %203 = stablehlo.rsqrt %202 : tensor<4x32x1xf32>
    %204 = stablehlo.broadcast_in_dim %203, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %205 = stablehlo.multiply %195, %204 : tensor<4x32x32xf32>
    %206 = stablehlo.dot_general %205, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x64xf32>) -> tensor<4x32x64xf32>
    return %206 : tensor<4x32x64xf32>
  }
  func.func private @tril(%arg0: tensor<32x32xi1>) -> tensor<32x32xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<32x32xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
    %2 = stablehlo.add %0, %1 : tensor<32x32xi32>
    %3 = stablehlo.iota dim = 1 : tensor<32x32xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<32x32xi1>, tensor<32x32xi1>
    return %6 : tensor<32x32xi1>
  }
  func.func private @_where(%arg0: tensor<32x32xi1>, %arg1: tensor<4x4x32x32xf32>, %arg2: tensor<f32>) -> tensor<4x4x32x32xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<32x32xi1>) -> tensor<4x4x32x32xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>
    return %3 : tensor<4x4x32x32xf32>
  }
}
