module @jit_transformer_training attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x96xf32>, %arg1: tensor<2x32xf32>, %arg2: tensor<128x32xf32>, %arg3: tensor<32x32xf32>, %arg4: tensor<32x128xf32>, %arg5: tensor<32x96xf32>, %arg6: tensor<2x32xf32>, %arg7: tensor<128x32xf32>, %arg8: tensor<32x32xf32>, %arg9: tensor<32x128xf32>, %arg10: tensor<32x64xf32>, %arg11: tensor<32x32xf32>, %arg12: tensor<64x32xf32>, %arg13: tensor<32x96xf32>, %arg14: tensor<2x32xf32>, %arg15: tensor<128x32xf32>, %arg16: tensor<32x32xf32>, %arg17: tensor<32x128xf32>, %arg18: tensor<32x96xf32>, %arg19: tensor<2x32xf32>, %arg20: tensor<128x32xf32>, %arg21: tensor<32x32xf32>, %arg22: tensor<32x128xf32>, %arg23: tensor<32x64xf32>, %arg24: tensor<32x32xf32>, %arg25: tensor<64x32xf32>, %arg26: tensor<32x96xf32>, %arg27: tensor<2x32xf32>, %arg28: tensor<128x32xf32>, %arg29: tensor<32x32xf32>, %arg30: tensor<32x128xf32>, %arg31: tensor<32x96xf32>, %arg32: tensor<2x32xf32>, %arg33: tensor<128x32xf32>, %arg34: tensor<32x32xf32>, %arg35: tensor<32x128xf32>, %arg36: tensor<32x64xf32>, %arg37: tensor<32x32xf32>, %arg38: tensor<64x32xf32>, %arg39: tensor<i32>, %arg40: tensor<4x33xi32>) -> (tensor<32x96xf32> {jax.result_info = "result['first']['blocks'][0]['attention']"}, tensor<2x32xf32> {jax.result_info = "result['first']['blocks'][0]['gains']"}, tensor<128x32xf32> {jax.result_info = "result['first']['blocks'][0]['narrow']"}, tensor<32x32xf32> {jax.result_info = "result['first']['blocks'][0]['projection']"}, tensor<32x128xf32> {jax.result_info = "result['first']['blocks'][0]['widen']"}, tensor<32x96xf32> {jax.result_info = "result['first']['blocks'][1]['attention']"}, tensor<2x32xf32> {jax.result_info = "result['first']['blocks'][1]['gains']"}, tensor<128x32xf32> {jax.result_info = "result['first']['blocks'][1]['narrow']"}, tensor<32x32xf32> {jax.result_info = "result['first']['blocks'][1]['projection']"}, tensor<32x128xf32> {jax.result_info = "result['first']['blocks'][1]['widen']"}, tensor<32x64xf32> {jax.result_info = "result['first']['output']"}, tensor<32x32xf32> {jax.result_info = "result['first']['positions']"}, tensor<64x32xf32> {jax.result_info = "result['first']['tokens']"}, tensor<f32> {jax.result_info = "result['gradient length']"}, tensor<f32> {jax.result_info = "result['loss']"}, tensor<32x96xf32> {jax.result_info = "result['second']['blocks'][0]['attention']"}, tensor<2x32xf32> {jax.result_info = "result['second']['blocks'][0]['gains']"}, tensor<128x32xf32> {jax.result_info = "result['second']['blocks'][0]['narrow']"}, tensor<32x32xf32> {jax.result_info = "result['second']['blocks'][0]['projection']"}, tensor<32x128xf32> {jax.result_info = "result['second']['blocks'][0]['widen']"}, tensor<32x96xf32> {jax.result_info = "result['second']['blocks'][1]['attention']"}, tensor<2x32xf32> {jax.result_info = "result['second']['blocks'][1]['gains']"}, tensor<128x32xf32> {jax.result_info = "result['second']['blocks'][1]['narrow']"}, tensor<32x32xf32> {jax.result_info = "result['second']['blocks'][1]['projection']"}, tensor<32x128xf32> {jax.result_info = "result['second']['blocks'][1]['widen']"}, tensor<32x64xf32> {jax.result_info = "result['second']['output']"}, tensor<32x32xf32> {jax.result_info = "result['second']['positions']"}, tensor<64x32xf32> {jax.result_info = "result['second']['tokens']"}, tensor<32x96xf32> {jax.result_info = "result['weights']['blocks'][0]['attention']"}, tensor<2x32xf32> {jax.result_info = "result['weights']['blocks'][0]['gains']"}, tensor<128x32xf32> {jax.result_info = "result['weights']['blocks'][0]['narrow']"}, tensor<32x32xf32> {jax.result_info = "result['weights']['blocks'][0]['projection']"}, tensor<32x128xf32> {jax.result_info = "result['weights']['blocks'][0]['widen']"}, tensor<32x96xf32> {jax.result_info = "result['weights']['blocks'][1]['attention']"}, tensor<2x32xf32> {jax.result_info = "result['weights']['blocks'][1]['gains']"}, tensor<128x32xf32> {jax.result_info = "result['weights']['blocks'][1]['narrow']"}, tensor<32x32xf32> {jax.result_info = "result['weights']['blocks'][1]['projection']"}, tensor<32x128xf32> {jax.result_info = "result['weights']['blocks'][1]['widen']"}, tensor<32x64xf32> {jax.result_info = "result['weights']['output']"}, tensor<32x32xf32> {jax.result_info = "result['weights']['positions']"}, tensor<64x32xf32> {jax.result_info = "result['weights']['tokens']"}) {
    %0 = stablehlo.slice %arg40 [0:4, 0:32] : (tensor<4x33xi32>) -> tensor<4x32xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x32xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<4x32xi32>, tensor<4x32xi32>) -> tensor<4x32xi1>
    %c_0 = stablehlo.constant dense<64> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x32xi32>
    %4 = stablehlo.add %0, %3 : tensor<4x32xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<4x32xi1>, tensor<4x32xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x32xi32>) -> tensor<4x32x1xi32>
    %7 = "stablehlo.gather"(%arg12, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}> : (tensor<64x32xf32>, tensor<4x32x1xi32>) -> tensor<4x32x32xf32>
    %8 = stablehlo.broadcast_in_dim %arg11, dims = [1, 2] : (tensor<32x32xf32>) -> tensor<1x32x32xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x32x32xf32>) -> tensor<4x32x32xf32>
    %10 = stablehlo.add %7, %9 : tensor<4x32x32xf32>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %11 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %12 = call @tril(%11) : (tensor<32x32xi1>) -> tensor<32x32xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.reduce(%10 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %16 = stablehlo.divide %14, %15 : tensor<4x32x1xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %18 = stablehlo.subtract %10, %17 : tensor<4x32x32xf32>
    %19 = stablehlo.multiply %18, %18 : tensor<4x32x32xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %21 = stablehlo.multiply %20, %18 : tensor<4x32x32xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.reduce(%19 init: %cst_4) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_5 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %25 = stablehlo.divide %23, %24 : tensor<4x32x1xf32>
    %cst_6 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %27 = stablehlo.add %25, %26 : tensor<4x32x1xf32>
    %28 = stablehlo.rsqrt %27 : tensor<4x32x1xf32>
    %29 = stablehlo.divide %28, %27 : tensor<4x32x1xf32>
    %cst_7 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %31 = stablehlo.multiply %30, %29 : tensor<4x32x1xf32>
    %32 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %33 = stablehlo.multiply %18, %32 : tensor<4x32x32xf32>
    %34 = stablehlo.slice %arg1 [0:1, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %35 = stablehlo.reshape %34 : (tensor<1x32xf32>) -> tensor<32xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %38 = stablehlo.multiply %33, %37 : tensor<4x32x32xf32>
    %39 = stablehlo.dot_general %38, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x96xf32>) -> tensor<4x32x96xf32>
    %40 = stablehlo.slice %39 [0:4, 0:32, 0:32] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %41 = stablehlo.slice %39 [0:4, 0:32, 32:64] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %42 = stablehlo.slice %39 [0:4, 0:32, 64:96] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %43 = stablehlo.reshape %40 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %44 = stablehlo.transpose %43, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %45 = stablehlo.reshape %41 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %46 = stablehlo.transpose %45, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %47 = stablehlo.reshape %42 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %48 = stablehlo.transpose %47, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %49 = stablehlo.transpose %46, dims = [0, 1, 3, 2] : (tensor<4x4x32x8xf32>) -> tensor<4x4x8x32xf32>
    %50 = stablehlo.dot_general %44, %49, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x8x32xf32>) -> tensor<4x4x32x32xf32>
    %cst_8 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %52 = stablehlo.multiply %50, %51 : tensor<4x4x32x32xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %53:3 = call @_where(%12, %52, %cst_9) : (tensor<32x32xi1>, tensor<4x4x32x32xf32>, tensor<f32>) -> (tensor<4x4x32x32xf32>, tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>)
    %cst_10 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %54 = stablehlo.reduce(%53#0 init: %cst_10) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %55 = stablehlo.reshape %54 : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %57 = stablehlo.compare EQ, %53#0, %56, FLOAT : (tensor<4x4x32x32xf32>, tensor<4x4x32x32xf32>) -> tensor<4x4x32x32xi1>
    %58 = stablehlo.convert %57 : (tensor<4x4x32x32xi1>) -> tensor<4x4x32x32xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %59 = stablehlo.reduce(%58 init: %cst_11) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %cst_12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %61 = stablehlo.maximum %60, %54 : tensor<4x4x32xf32>
    %62 = stablehlo.compare EQ, %54, %61, FLOAT : (tensor<4x4x32xf32>, tensor<4x4x32xf32>) -> tensor<4x4x32xi1>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %65 = stablehlo.select %62, %63, %64 : tensor<4x4x32xi1>, tensor<4x4x32xf32>
    %cst_15 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %67 = stablehlo.compare EQ, %66, %61, FLOAT : (tensor<4x4x32xf32>, tensor<4x4x32xf32>) -> tensor<4x4x32xi1>
    %cst_16 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %70 = stablehlo.select %67, %68, %69 : tensor<4x4x32xi1>, tensor<4x4x32xf32>
    %71 = stablehlo.divide %65, %70 : tensor<4x4x32xf32>
    %72 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %73 = stablehlo.broadcast_in_dim %72, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %74 = stablehlo.subtract %53#0, %73 : tensor<4x4x32x32xf32>
    %75 = stablehlo.exponential %74 : tensor<4x4x32x32xf32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %76 = stablehlo.reduce(%75 init: %cst_18) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %79 = stablehlo.divide %75, %78 : tensor<4x4x32x32xf32>
    %80 = stablehlo.multiply %77, %77 : tensor<4x4x32x1xf32>
    %cst_19 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %81 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<4x4x32x1xf32>
    %82 = stablehlo.divide %81, %80 : tensor<4x4x32x1xf32>
    %83 = stablehlo.dot_general %79, %48, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x8xf32>
    %84 = stablehlo.transpose %83, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %85 = stablehlo.reshape %84 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %86 = stablehlo.dot_general %85, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x32xf32>) -> tensor<4x32x32xf32>
    %87 = stablehlo.add %10, %86 : tensor<4x32x32xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %88 = stablehlo.reduce(%87 init: %cst_20) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_21 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %90 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %91 = stablehlo.divide %89, %90 : tensor<4x32x1xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %93 = stablehlo.subtract %87, %92 : tensor<4x32x32xf32>
    %94 = stablehlo.multiply %93, %93 : tensor<4x32x32xf32>
    %cst_22 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %96 = stablehlo.multiply %95, %93 : tensor<4x32x32xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %97 = stablehlo.reduce(%94 init: %cst_23) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_24 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %99 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %100 = stablehlo.divide %98, %99 : tensor<4x32x1xf32>
    %cst_25 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %102 = stablehlo.add %100, %101 : tensor<4x32x1xf32>
    %103 = stablehlo.rsqrt %102 : tensor<4x32x1xf32>
    %104 = stablehlo.divide %103, %102 : tensor<4x32x1xf32>
    %cst_26 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %105 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %106 = stablehlo.multiply %105, %104 : tensor<4x32x1xf32>
    %107 = stablehlo.broadcast_in_dim %103, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %108 = stablehlo.multiply %93, %107 : tensor<4x32x32xf32>
    %109 = stablehlo.slice %arg1 [1:2, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %110 = stablehlo.reshape %109 : (tensor<1x32xf32>) -> tensor<32xf32>
    %111 = stablehlo.broadcast_in_dim %110, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %112 = stablehlo.broadcast_in_dim %111, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %113 = stablehlo.multiply %108, %112 : tensor<4x32x32xf32>
    %114 = stablehlo.dot_general %113, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x128xf32>) -> tensor<4x32x128xf32>
    %115 = stablehlo.multiply %114, %114 : tensor<4x32x128xf32>
    %116 = stablehlo.multiply %115, %114 : tensor<4x32x128xf32>
    %117 = stablehlo.multiply %114, %114 : tensor<4x32x128xf32>
    %cst_27 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %118 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %119 = stablehlo.multiply %118, %117 : tensor<4x32x128xf32>
    %cst_28 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %121 = stablehlo.multiply %120, %116 : tensor<4x32x128xf32>
    %122 = stablehlo.add %114, %121 : tensor<4x32x128xf32>
    %cst_29 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %123 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %124 = stablehlo.multiply %123, %122 : tensor<4x32x128xf32>
    %125 = stablehlo.tanh %124 : tensor<4x32x128xf32>
    %cst_30 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %126 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %127 = stablehlo.subtract %126, %125 : tensor<4x32x128xf32>
    %cst_31 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %128 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %129 = stablehlo.add %128, %125 : tensor<4x32x128xf32>
    %cst_32 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %130 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %131 = stablehlo.multiply %130, %129 : tensor<4x32x128xf32>
    %132 = stablehlo.multiply %114, %131 : tensor<4x32x128xf32>
    %133 = stablehlo.dot_general %132, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<128x32xf32>) -> tensor<4x32x32xf32>
    %134 = stablehlo.add %87, %133 : tensor<4x32x32xf32>
    %cst_33 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %135 = stablehlo.reduce(%134 init: %cst_33) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %136 = stablehlo.broadcast_in_dim %135, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_34 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %137 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %138 = stablehlo.divide %136, %137 : tensor<4x32x1xf32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %140 = stablehlo.subtract %134, %139 : tensor<4x32x32xf32>
    %141 = stablehlo.multiply %140, %140 : tensor<4x32x32xf32>
    %cst_35 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %142 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %143 = stablehlo.multiply %142, %140 : tensor<4x32x32xf32>
    %cst_36 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %144 = stablehlo.reduce(%141 init: %cst_36) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_37 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %146 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %147 = stablehlo.divide %145, %146 : tensor<4x32x1xf32>
    %cst_38 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %148 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %149 = stablehlo.add %147, %148 : tensor<4x32x1xf32>
    %150 = stablehlo.rsqrt %149 : tensor<4x32x1xf32>
    %151 = stablehlo.divide %150, %149 : tensor<4x32x1xf32>
    %cst_39 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %152 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %153 = stablehlo.multiply %152, %151 : tensor<4x32x1xf32>
    %154 = stablehlo.broadcast_in_dim %150, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %155 = stablehlo.multiply %140, %154 : tensor<4x32x32xf32>
    %156 = stablehlo.slice %arg6 [0:1, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %157 = stablehlo.reshape %156 : (tensor<1x32xf32>) -> tensor<32xf32>
    %158 = stablehlo.broadcast_in_dim %157, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %160 = stablehlo.multiply %155, %159 : tensor<4x32x32xf32>
    %161 = stablehlo.dot_general %160, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x96xf32>) -> tensor<4x32x96xf32>
    %162 = stablehlo.slice %161 [0:4, 0:32, 0:32] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %163 = stablehlo.slice %161 [0:4, 0:32, 32:64] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %164 = stablehlo.slice %161 [0:4, 0:32, 64:96] : (tensor<4x32x96xf32>) -> tensor<4x32x32xf32>
    %165 = stablehlo.reshape %162 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %166 = stablehlo.transpose %165, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %167 = stablehlo.reshape %163 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %168 = stablehlo.transpose %167, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %169 = stablehlo.reshape %164 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %170 = stablehlo.transpose %169, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %171 = stablehlo.transpose %168, dims = [0, 1, 3, 2] : (tensor<4x4x32x8xf32>) -> tensor<4x4x8x32xf32>
    %172 = stablehlo.dot_general %166, %171, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x8x32xf32>) -> tensor<4x4x32x32xf32>
    %cst_40 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %173 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %174 = stablehlo.multiply %172, %173 : tensor<4x4x32x32xf32>
    %cst_41 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %175:3 = call @_where(%12, %174, %cst_41) : (tensor<32x32xi1>, tensor<4x4x32x32xf32>, tensor<f32>) -> (tensor<4x4x32x32xf32>, tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>)
    %cst_42 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %176 = stablehlo.reduce(%175#0 init: %cst_42) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %177 = stablehlo.reshape %176 : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %178 = stablehlo.broadcast_in_dim %177, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %179 = stablehlo.compare EQ, %175#0, %178, FLOAT : (tensor<4x4x32x32xf32>, tensor<4x4x32x32xf32>) -> tensor<4x4x32x32xi1>
    %180 = stablehlo.convert %179 : (tensor<4x4x32x32xi1>) -> tensor<4x4x32x32xf32>
    %cst_43 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %181 = stablehlo.reduce(%180 init: %cst_43) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %cst_44 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %182 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %183 = stablehlo.maximum %182, %176 : tensor<4x4x32xf32>
    %184 = stablehlo.compare EQ, %176, %183, FLOAT : (tensor<4x4x32xf32>, tensor<4x4x32xf32>) -> tensor<4x4x32xi1>
    %cst_45 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %185 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %cst_46 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %186 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %187 = stablehlo.select %184, %185, %186 : tensor<4x4x32xi1>, tensor<4x4x32xf32>
    %cst_47 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %188 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %189 = stablehlo.compare EQ, %188, %183, FLOAT : (tensor<4x4x32xf32>, tensor<4x4x32xf32>) -> tensor<4x4x32xi1>
    %cst_48 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %190 = stablehlo.broadcast_in_dim %cst_48, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %cst_49 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %191 = stablehlo.broadcast_in_dim %cst_49, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %192 = stablehlo.select %189, %190, %191 : tensor<4x4x32xi1>, tensor<4x4x32xf32>
    %193 = stablehlo.divide %187, %192 : tensor<4x4x32xf32>
    %194 = stablehlo.broadcast_in_dim %183, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %196 = stablehlo.subtract %175#0, %195 : tensor<4x4x32x32xf32>
    %197 = stablehlo.exponential %196 : tensor<4x4x32x32xf32>
    %cst_50 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %198 = stablehlo.reduce(%197 init: %cst_50) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %199 = stablehlo.broadcast_in_dim %198, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %200 = stablehlo.broadcast_in_dim %199, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %201 = stablehlo.divide %197, %200 : tensor<4x4x32x32xf32>
    %202 = stablehlo.multiply %199, %199 : tensor<4x4x32x1xf32>
    %cst_51 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %203 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<4x4x32x1xf32>
    %204 = stablehlo.divide %203, %202 : tensor<4x4x32x1xf32>
    %205 = stablehlo.dot_general %201, %170, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x8xf32>
    %206 = stablehlo.transpose %205, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %207 = stablehlo.reshape %206 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %208 = stablehlo.dot_general %207, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x32xf32>) -> tensor<4x32x32xf32>
    %209 = stablehlo.add %134, %208 : tensor<4x32x32xf32>
    %cst_52 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %210 = stablehlo.reduce(%209 init: %cst_52) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %211 = stablehlo.broadcast_in_dim %210, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_53 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %212 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %213 = stablehlo.divide %211, %212 : tensor<4x32x1xf32>
    %214 = stablehlo.broadcast_in_dim %213, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %215 = stablehlo.subtract %209, %214 : tensor<4x32x32xf32>
    %216 = stablehlo.multiply %215, %215 : tensor<4x32x32xf32>
    %cst_54 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %217 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %218 = stablehlo.multiply %217, %215 : tensor<4x32x32xf32>
    %cst_55 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %219 = stablehlo.reduce(%216 init: %cst_55) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %220 = stablehlo.broadcast_in_dim %219, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_56 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %221 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %222 = stablehlo.divide %220, %221 : tensor<4x32x1xf32>
    %cst_57 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %223 = stablehlo.broadcast_in_dim %cst_57, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %224 = stablehlo.add %222, %223 : tensor<4x32x1xf32>
    %225 = stablehlo.rsqrt %224 : tensor<4x32x1xf32>
    %226 = stablehlo.divide %225, %224 : tensor<4x32x1xf32>
    %cst_58 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %227 = stablehlo.broadcast_in_dim %cst_58, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %228 = stablehlo.multiply %227, %226 : tensor<4x32x1xf32>
    %229 = stablehlo.broadcast_in_dim %225, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %230 = stablehlo.multiply %215, %229 : tensor<4x32x32xf32>
    %231 = stablehlo.slice %arg6 [1:2, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %232 = stablehlo.reshape %231 : (tensor<1x32xf32>) -> tensor<32xf32>
    %233 = stablehlo.broadcast_in_dim %232, dims = [2] : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %235 = stablehlo.multiply %230, %234 : tensor<4x32x32xf32>
    %236 = stablehlo.dot_general %235, %arg9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x128xf32>) -> tensor<4x32x128xf32>
    %237 = stablehlo.multiply %236, %236 : tensor<4x32x128xf32>
    %238 = stablehlo.multiply %237, %236 : tensor<4x32x128xf32>
    %239 = stablehlo.multiply %236, %236 : tensor<4x32x128xf32>
    %cst_59 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %240 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %241 = stablehlo.multiply %240, %239 : tensor<4x32x128xf32>
    %cst_60 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %242 = stablehlo.broadcast_in_dim %cst_60, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %243 = stablehlo.multiply %242, %238 : tensor<4x32x128xf32>
    %244 = stablehlo.add %236, %243 : tensor<4x32x128xf32>
    %cst_61 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %245 = stablehlo.broadcast_in_dim %cst_61, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %246 = stablehlo.multiply %245, %244 : tensor<4x32x128xf32>
    %247 = stablehlo.tanh %246 : tensor<4x32x128xf32>
    %cst_62 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %248 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %249 = stablehlo.subtract %248, %247 : tensor<4x32x128xf32>
    %cst_63 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %250 = stablehlo.broadcast_in_dim %cst_63, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %251 = stablehlo.add %250, %247 : tensor<4x32x128xf32>
    %cst_64 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %252 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %253 = stablehlo.multiply %252, %251 : tensor<4x32x128xf32>
    %254 = stablehlo.multiply %236, %253 : tensor<4x32x128xf32>
    %255 = stablehlo.dot_general %254, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<128x32xf32>) -> tensor<4x32x32xf32>
    %256 = stablehlo.add %209, %255 : tensor<4x32x32xf32>
    %cst_65 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %257 = stablehlo.reduce(%256 init: %cst_65) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %258 = stablehlo.broadcast_in_dim %257, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_66 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %259 = stablehlo.broadcast_in_dim %cst_66, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %260 = stablehlo.divide %258, %259 : tensor<4x32x1xf32>
    %261 = stablehlo.broadcast_in_dim %260, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %262 = stablehlo.subtract %256, %261 : tensor<4x32x32xf32>
    %263 = stablehlo.multiply %262, %262 : tensor<4x32x32xf32>
    %cst_67 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %264 = stablehlo.broadcast_in_dim %cst_67, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %265 = stablehlo.multiply %264, %262 : tensor<4x32x32xf32>
    %cst_68 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %266 = stablehlo.reduce(%263 init: %cst_68) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %267 = stablehlo.broadcast_in_dim %266, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_69 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %268 = stablehlo.broadcast_in_dim %cst_69, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %269 = stablehlo.divide %267, %268 : tensor<4x32x1xf32>
    %cst_70 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %270 = stablehlo.broadcast_in_dim %cst_70, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %271 = stablehlo.add %269, %270 : tensor<4x32x1xf32>
    %272 = stablehlo.rsqrt %271 : tensor<4x32x1xf32>
    %273 = stablehlo.divide %272, %271 : tensor<4x32x1xf32>
    %cst_71 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %274 = stablehlo.broadcast_in_dim %cst_71, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %275 = stablehlo.multiply %274, %273 : tensor<4x32x1xf32>
    %276 = stablehlo.broadcast_in_dim %272, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %277 = stablehlo.multiply %262, %276 : tensor<4x32x32xf32>
    %278 = stablehlo.dot_general %277, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x64xf32>) -> tensor<4x32x64xf32>
    %279 = stablehlo.slice %arg40 [0:4, 1:33] : (tensor<4x33xi32>) -> tensor<4x32xi32>
    %280:3 = call @log_softmax(%278) : (tensor<4x32x64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32x64xf32>, tensor<4x32x1xf32>)
    %281 = stablehlo.broadcast_in_dim %279, dims = [0, 1] : (tensor<4x32xi32>) -> tensor<4x32x1xi32>
    %282:2 = call @take_along_axis(%280#0, %281) : (tensor<4x32x64xf32>, tensor<4x32x1xi32>) -> (tensor<4x32x1xf32>, tensor<4x32x1x1xi32>)
    %cst_72 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %283 = stablehlo.reduce(%282#0 init: %cst_72) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_73 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %284 = stablehlo.divide %283, %cst_73 : tensor<f32>
    %285 = stablehlo.negate %284 : tensor<f32>
    %cst_74 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %286 = stablehlo.negate %cst_74 : tensor<f32>
    %cst_75 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %287 = stablehlo.divide %286, %cst_75 : tensor<f32>
    %288 = stablehlo.broadcast_in_dim %287, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %289 = call @take_along_axis_0(%282#1, %288) : (tensor<4x32x1x1xi32>, tensor<4x32x1xf32>) -> tensor<4x32x64xf32>
    %290 = call @log_softmax_1(%280#1, %280#2, %289) : (tensor<4x32x64xf32>, tensor<4x32x1xf32>, tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
    %291 = stablehlo.dot_general %290, %277, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x64xf32>, tensor<4x32x32xf32>) -> tensor<64x32xf32>
    %292 = stablehlo.transpose %291, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
    %293 = stablehlo.dot_general %290, %arg10, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x64xf32>, tensor<32x64xf32>) -> tensor<4x32x32xf32>
    %294 = stablehlo.multiply %262, %293 : tensor<4x32x32xf32>
    %cst_76 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %295 = stablehlo.reduce(%294 init: %cst_76) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %296 = stablehlo.reshape %295 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %297 = stablehlo.broadcast_in_dim %272, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %298 = stablehlo.multiply %293, %297 : tensor<4x32x32xf32>
    %299 = stablehlo.multiply %296, %275 : tensor<4x32x1xf32>
    %cst_77 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %300 = stablehlo.broadcast_in_dim %cst_77, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %301 = stablehlo.divide %299, %300 : tensor<4x32x1xf32>
    %cst_78 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %302 = stablehlo.reduce(%301 init: %cst_78) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %303 = stablehlo.broadcast_in_dim %302, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %304 = stablehlo.multiply %303, %265 : tensor<4x32x32xf32>
    %305 = stablehlo.add %298, %304 : tensor<4x32x32xf32>
    %306 = stablehlo.negate %305 : tensor<4x32x32xf32>
    %cst_79 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %307 = stablehlo.reduce(%306 init: %cst_79) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %308 = stablehlo.reshape %307 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %cst_80 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %309 = stablehlo.broadcast_in_dim %cst_80, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %310 = stablehlo.divide %308, %309 : tensor<4x32x1xf32>
    %cst_81 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %311 = stablehlo.reduce(%310 init: %cst_81) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %312 = stablehlo.broadcast_in_dim %311, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %313 = stablehlo.add %305, %312 : tensor<4x32x32xf32>
    %314 = stablehlo.dot_general %313, %254, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<4x32x128xf32>) -> tensor<32x128xf32>
    %315 = stablehlo.transpose %314, dims = [1, 0] : (tensor<32x128xf32>) -> tensor<128x32xf32>
    %316 = stablehlo.dot_general %313, %arg7, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<128x32xf32>) -> tensor<4x32x128xf32>
    %317 = stablehlo.multiply %236, %316 : tensor<4x32x128xf32>
    %318 = stablehlo.multiply %316, %253 : tensor<4x32x128xf32>
    %cst_82 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %319 = stablehlo.broadcast_in_dim %cst_82, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %320 = stablehlo.multiply %319, %317 : tensor<4x32x128xf32>
    %321 = stablehlo.multiply %320, %249 : tensor<4x32x128xf32>
    %322 = stablehlo.multiply %321, %247 : tensor<4x32x128xf32>
    %323 = stablehlo.add %321, %322 : tensor<4x32x128xf32>
    %cst_83 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %324 = stablehlo.broadcast_in_dim %cst_83, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %325 = stablehlo.multiply %324, %323 : tensor<4x32x128xf32>
    %326 = stablehlo.add %318, %325 : tensor<4x32x128xf32>
    %cst_84 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %327 = stablehlo.broadcast_in_dim %cst_84, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %328 = stablehlo.multiply %327, %325 : tensor<4x32x128xf32>
    %329 = stablehlo.multiply %328, %241 : tensor<4x32x128xf32>
    %330 = stablehlo.add %326, %329 : tensor<4x32x128xf32>
    %331 = stablehlo.dot_general %330, %235, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<4x32x32xf32>) -> tensor<128x32xf32>
    %332 = stablehlo.transpose %331, dims = [1, 0] : (tensor<128x32xf32>) -> tensor<32x128xf32>
    %333 = stablehlo.dot_general %330, %arg9, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<32x128xf32>) -> tensor<4x32x32xf32>
    %334 = stablehlo.multiply %230, %333 : tensor<4x32x32xf32>
    %cst_85 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %335 = stablehlo.reduce(%334 init: %cst_85) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %336 = stablehlo.reshape %335 : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %337 = stablehlo.broadcast_in_dim %233, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %338 = stablehlo.multiply %333, %337 : tensor<4x32x32xf32>
    %cst_86 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %339 = stablehlo.reduce(%336 init: %cst_86) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x32xf32>, tensor<f32>) -> tensor<32xf32>
    %340 = stablehlo.broadcast_in_dim %339, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %cst_87 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %341 = stablehlo.pad %340, %cst_87, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<1x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %342 = stablehlo.multiply %215, %338 : tensor<4x32x32xf32>
    %cst_88 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %343 = stablehlo.reduce(%342 init: %cst_88) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %344 = stablehlo.reshape %343 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %345 = stablehlo.broadcast_in_dim %225, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %346 = stablehlo.multiply %338, %345 : tensor<4x32x32xf32>
    %347 = stablehlo.multiply %344, %228 : tensor<4x32x1xf32>
    %cst_89 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %348 = stablehlo.broadcast_in_dim %cst_89, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %349 = stablehlo.divide %347, %348 : tensor<4x32x1xf32>
    %cst_90 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %350 = stablehlo.reduce(%349 init: %cst_90) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %351 = stablehlo.broadcast_in_dim %350, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %352 = stablehlo.multiply %351, %218 : tensor<4x32x32xf32>
    %353 = stablehlo.add %346, %352 : tensor<4x32x32xf32>
    %354 = stablehlo.negate %353 : tensor<4x32x32xf32>
    %cst_91 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %355 = stablehlo.reduce(%354 init: %cst_91) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %356 = stablehlo.reshape %355 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %357 = stablehlo.add %313, %353 : tensor<4x32x32xf32>
    %cst_92 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %358 = stablehlo.broadcast_in_dim %cst_92, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %359 = stablehlo.divide %356, %358 : tensor<4x32x1xf32>
    %cst_93 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %360 = stablehlo.reduce(%359 init: %cst_93) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %361 = stablehlo.broadcast_in_dim %360, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %362 = stablehlo.add %357, %361 : tensor<4x32x32xf32>
    %363 = stablehlo.dot_general %362, %207, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<4x32x32xf32>) -> tensor<32x32xf32>
    %364 = stablehlo.transpose %363, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %365 = stablehlo.dot_general %362, %arg8, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x32xf32>) -> tensor<4x32x32xf32>
    %366 = stablehlo.reshape %365 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %367 = stablehlo.transpose %366, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %368 = stablehlo.dot_general %367, %201, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x32x32xf32>) -> tensor<4x4x8x32xf32>
    %369 = stablehlo.transpose %368, dims = [0, 1, 3, 2] : (tensor<4x4x8x32xf32>) -> tensor<4x4x32x8xf32>
    %370 = stablehlo.dot_general %367, %170, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x32xf32>
    %371 = stablehlo.broadcast_in_dim %204, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %372 = stablehlo.multiply %370, %371 : tensor<4x4x32x32xf32>
    %373 = stablehlo.multiply %372, %197 : tensor<4x4x32x32xf32>
    %cst_94 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %374 = stablehlo.reduce(%373 init: %cst_94) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %375 = stablehlo.reshape %374 : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %376 = stablehlo.negate %375 : tensor<4x4x32x1xf32>
    %377 = stablehlo.broadcast_in_dim %199, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %378 = stablehlo.divide %370, %377 : tensor<4x4x32x32xf32>
    %cst_95 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %379 = stablehlo.reduce(%376 init: %cst_95) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x1xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %380 = stablehlo.broadcast_in_dim %379, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x32xf32>
    %381 = stablehlo.add %378, %380 : tensor<4x4x32x32xf32>
    %382 = stablehlo.multiply %381, %197 : tensor<4x4x32x32xf32>
    %383 = call @_where_2(%175#1, %175#2, %382) : (tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>, tensor<4x4x32x32xf32>) -> tensor<4x4x32x32xf32>
    %cst_96 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %384 = stablehlo.broadcast_in_dim %cst_96, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %385 = stablehlo.multiply %383, %384 : tensor<4x4x32x32xf32>
    %386 = stablehlo.dot_general %385, %166, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x8xf32>
    %387 = stablehlo.transpose %386, dims = [0, 1, 3, 2] : (tensor<4x4x32x8xf32>) -> tensor<4x4x8x32xf32>
    %388 = stablehlo.dot_general %385, %171, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x8x32xf32>) -> tensor<4x4x32x8xf32>
    %389 = stablehlo.transpose %387, dims = [0, 1, 3, 2] : (tensor<4x4x8x32xf32>) -> tensor<4x4x32x8xf32>
    %390 = stablehlo.transpose %369, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %391 = stablehlo.reshape %390 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %392 = stablehlo.transpose %389, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %393 = stablehlo.reshape %392 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %394 = stablehlo.transpose %388, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %395 = stablehlo.reshape %394 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %396 = stablehlo.concatenate %395, %393, %391, dim = 2 : (tensor<4x32x32xf32>, tensor<4x32x32xf32>, tensor<4x32x32xf32>) -> tensor<4x32x96xf32>
    %397 = stablehlo.dot_general %396, %160, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x96xf32>, tensor<4x32x32xf32>) -> tensor<96x32xf32>
    %398 = stablehlo.transpose %397, dims = [1, 0] : (tensor<96x32xf32>) -> tensor<32x96xf32>
    %399 = stablehlo.dot_general %396, %arg5, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x96xf32>, tensor<32x96xf32>) -> tensor<4x32x32xf32>
    %400 = stablehlo.multiply %155, %399 : tensor<4x32x32xf32>
    %cst_97 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %401 = stablehlo.reduce(%400 init: %cst_97) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %402 = stablehlo.reshape %401 : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %403 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %404 = stablehlo.multiply %399, %403 : tensor<4x32x32xf32>
    %cst_98 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %405 = stablehlo.reduce(%402 init: %cst_98) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x32xf32>, tensor<f32>) -> tensor<32xf32>
    %406 = stablehlo.broadcast_in_dim %405, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %cst_99 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %407 = stablehlo.pad %406, %cst_99, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<1x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %408 = stablehlo.add %341, %407 : tensor<2x32xf32>
    %409 = stablehlo.multiply %140, %404 : tensor<4x32x32xf32>
    %cst_100 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %410 = stablehlo.reduce(%409 init: %cst_100) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %411 = stablehlo.reshape %410 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %412 = stablehlo.broadcast_in_dim %150, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %413 = stablehlo.multiply %404, %412 : tensor<4x32x32xf32>
    %414 = stablehlo.multiply %411, %153 : tensor<4x32x1xf32>
    %cst_101 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %415 = stablehlo.broadcast_in_dim %cst_101, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %416 = stablehlo.divide %414, %415 : tensor<4x32x1xf32>
    %cst_102 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %417 = stablehlo.reduce(%416 init: %cst_102) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %418 = stablehlo.broadcast_in_dim %417, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %419 = stablehlo.multiply %418, %143 : tensor<4x32x32xf32>
    %420 = stablehlo.add %413, %419 : tensor<4x32x32xf32>
    %421 = stablehlo.negate %420 : tensor<4x32x32xf32>
    %cst_103 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %422 = stablehlo.reduce(%421 init: %cst_103) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %423 = stablehlo.reshape %422 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %424 = stablehlo.add %362, %420 : tensor<4x32x32xf32>
    %cst_104 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %425 = stablehlo.broadcast_in_dim %cst_104, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %426 = stablehlo.divide %423, %425 : tensor<4x32x1xf32>
    %cst_105 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %427 = stablehlo.reduce(%426 init: %cst_105) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %428 = stablehlo.broadcast_in_dim %427, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %429 = stablehlo.add %424, %428 : tensor<4x32x32xf32>
    %430 = stablehlo.dot_general %429, %132, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<4x32x128xf32>) -> tensor<32x128xf32>
    %431 = stablehlo.transpose %430, dims = [1, 0] : (tensor<32x128xf32>) -> tensor<128x32xf32>
    %432 = stablehlo.dot_general %429, %arg2, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<128x32xf32>) -> tensor<4x32x128xf32>
    %433 = stablehlo.multiply %114, %432 : tensor<4x32x128xf32>
    %434 = stablehlo.multiply %432, %131 : tensor<4x32x128xf32>
    %cst_106 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %435 = stablehlo.broadcast_in_dim %cst_106, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %436 = stablehlo.multiply %435, %433 : tensor<4x32x128xf32>
    %437 = stablehlo.multiply %436, %127 : tensor<4x32x128xf32>
    %438 = stablehlo.multiply %437, %125 : tensor<4x32x128xf32>
    %439 = stablehlo.add %437, %438 : tensor<4x32x128xf32>
    %cst_107 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %440 = stablehlo.broadcast_in_dim %cst_107, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %441 = stablehlo.multiply %440, %439 : tensor<4x32x128xf32>
    %442 = stablehlo.add %434, %441 : tensor<4x32x128xf32>
    %cst_108 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %443 = stablehlo.broadcast_in_dim %cst_108, dims = [] : (tensor<f32>) -> tensor<4x32x128xf32>
    %444 = stablehlo.multiply %443, %441 : tensor<4x32x128xf32>
    %445 = stablehlo.multiply %444, %119 : tensor<4x32x128xf32>
    %446 = stablehlo.add %442, %445 : tensor<4x32x128xf32>
    %447 = stablehlo.dot_general %446, %113, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<4x32x32xf32>) -> tensor<128x32xf32>
    %448 = stablehlo.transpose %447, dims = [1, 0] : (tensor<128x32xf32>) -> tensor<32x128xf32>
    %449 = stablehlo.dot_general %446, %arg4, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x128xf32>, tensor<32x128xf32>) -> tensor<4x32x32xf32>
    %450 = stablehlo.multiply %108, %449 : tensor<4x32x32xf32>
    %cst_109 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %451 = stablehlo.reduce(%450 init: %cst_109) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %452 = stablehlo.reshape %451 : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %453 = stablehlo.broadcast_in_dim %111, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %454 = stablehlo.multiply %449, %453 : tensor<4x32x32xf32>
    %cst_110 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %455 = stablehlo.reduce(%452 init: %cst_110) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x32xf32>, tensor<f32>) -> tensor<32xf32>
    %456 = stablehlo.broadcast_in_dim %455, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %cst_111 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %457 = stablehlo.pad %456, %cst_111, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<1x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %458 = stablehlo.multiply %93, %454 : tensor<4x32x32xf32>
    %cst_112 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %459 = stablehlo.reduce(%458 init: %cst_112) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %460 = stablehlo.reshape %459 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %461 = stablehlo.broadcast_in_dim %103, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %462 = stablehlo.multiply %454, %461 : tensor<4x32x32xf32>
    %463 = stablehlo.multiply %460, %106 : tensor<4x32x1xf32>
    %cst_113 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %464 = stablehlo.broadcast_in_dim %cst_113, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %465 = stablehlo.divide %463, %464 : tensor<4x32x1xf32>
    %cst_114 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %466 = stablehlo.reduce(%465 init: %cst_114) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %467 = stablehlo.broadcast_in_dim %466, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %468 = stablehlo.multiply %467, %96 : tensor<4x32x32xf32>
    %469 = stablehlo.add %462, %468 : tensor<4x32x32xf32>
    %470 = stablehlo.negate %469 : tensor<4x32x32xf32>
    %cst_115 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %471 = stablehlo.reduce(%470 init: %cst_115) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %472 = stablehlo.reshape %471 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %473 = stablehlo.add %429, %469 : tensor<4x32x32xf32>
    %cst_116 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %474 = stablehlo.broadcast_in_dim %cst_116, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %475 = stablehlo.divide %472, %474 : tensor<4x32x1xf32>
    %cst_117 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %476 = stablehlo.reduce(%475 init: %cst_117) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %477 = stablehlo.broadcast_in_dim %476, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %478 = stablehlo.add %473, %477 : tensor<4x32x32xf32>
    %479 = stablehlo.dot_general %478, %85, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<4x32x32xf32>) -> tensor<32x32xf32>
    %480 = stablehlo.transpose %479, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %481 = stablehlo.dot_general %478, %arg3, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x32xf32>, tensor<32x32xf32>) -> tensor<4x32x32xf32>
    %482 = stablehlo.reshape %481 : (tensor<4x32x32xf32>) -> tensor<4x32x4x8xf32>
    %483 = stablehlo.transpose %482, dims = [0, 2, 1, 3] : (tensor<4x32x4x8xf32>) -> tensor<4x4x32x8xf32>
    %484 = stablehlo.dot_general %483, %79, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x32x32xf32>) -> tensor<4x4x8x32xf32>
    %485 = stablehlo.transpose %484, dims = [0, 1, 3, 2] : (tensor<4x4x8x32xf32>) -> tensor<4x4x32x8xf32>
    %486 = stablehlo.dot_general %483, %48, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x32xf32>
    %487 = stablehlo.broadcast_in_dim %82, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %488 = stablehlo.multiply %486, %487 : tensor<4x4x32x32xf32>
    %489 = stablehlo.multiply %488, %75 : tensor<4x4x32x32xf32>
    %cst_118 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %490 = stablehlo.reduce(%489 init: %cst_118) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x32xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %491 = stablehlo.reshape %490 : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %492 = stablehlo.negate %491 : tensor<4x4x32x1xf32>
    %493 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x32xf32>
    %494 = stablehlo.divide %486, %493 : tensor<4x4x32x32xf32>
    %cst_119 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %495 = stablehlo.reduce(%492 init: %cst_119) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x1xf32>, tensor<f32>) -> tensor<4x4x32xf32>
    %496 = stablehlo.broadcast_in_dim %495, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x32xf32>
    %497 = stablehlo.add %494, %496 : tensor<4x4x32x32xf32>
    %498 = stablehlo.multiply %497, %75 : tensor<4x4x32x32xf32>
    %499 = call @_where_2(%53#1, %53#2, %498) : (tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>, tensor<4x4x32x32xf32>) -> tensor<4x4x32x32xf32>
    %cst_120 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %500 = stablehlo.broadcast_in_dim %cst_120, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %501 = stablehlo.multiply %499, %500 : tensor<4x4x32x32xf32>
    %502 = stablehlo.dot_general %501, %44, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x32x8xf32>) -> tensor<4x4x32x8xf32>
    %503 = stablehlo.transpose %502, dims = [0, 1, 3, 2] : (tensor<4x4x32x8xf32>) -> tensor<4x4x8x32xf32>
    %504 = stablehlo.dot_general %501, %49, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x32xf32>, tensor<4x4x8x32xf32>) -> tensor<4x4x32x8xf32>
    %505 = stablehlo.transpose %503, dims = [0, 1, 3, 2] : (tensor<4x4x8x32xf32>) -> tensor<4x4x32x8xf32>
    %506 = stablehlo.transpose %485, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %507 = stablehlo.reshape %506 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %508 = stablehlo.transpose %505, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %509 = stablehlo.reshape %508 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %510 = stablehlo.transpose %504, dims = [0, 2, 1, 3] : (tensor<4x4x32x8xf32>) -> tensor<4x32x4x8xf32>
    %511 = stablehlo.reshape %510 : (tensor<4x32x4x8xf32>) -> tensor<4x32x32xf32>
    %512 = stablehlo.concatenate %511, %509, %507, dim = 2 : (tensor<4x32x32xf32>, tensor<4x32x32xf32>, tensor<4x32x32xf32>) -> tensor<4x32x96xf32>
    %513 = stablehlo.dot_general %512, %38, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x96xf32>, tensor<4x32x32xf32>) -> tensor<96x32xf32>
    %514 = stablehlo.transpose %513, dims = [1, 0] : (tensor<96x32xf32>) -> tensor<32x96xf32>
    %515 = stablehlo.dot_general %512, %arg0, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32x96xf32>, tensor<32x96xf32>) -> tensor<4x32x32xf32>
    %516 = stablehlo.multiply %33, %515 : tensor<4x32x32xf32>
    %cst_121 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %517 = stablehlo.reduce(%516 init: %cst_121) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %518 = stablehlo.reshape %517 : (tensor<32xf32>) -> tensor<1x1x32xf32>
    %519 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2] : (tensor<1x1x32xf32>) -> tensor<4x32x32xf32>
    %520 = stablehlo.multiply %515, %519 : tensor<4x32x32xf32>
    %cst_122 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %521 = stablehlo.reduce(%518 init: %cst_122) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x32xf32>, tensor<f32>) -> tensor<32xf32>
    %522 = stablehlo.broadcast_in_dim %521, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %cst_123 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %523 = stablehlo.pad %522, %cst_123, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<1x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %524 = stablehlo.add %457, %523 : tensor<2x32xf32>
    %525 = stablehlo.multiply %18, %520 : tensor<4x32x32xf32>
    %cst_124 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %526 = stablehlo.reduce(%525 init: %cst_124) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %527 = stablehlo.reshape %526 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %528 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %529 = stablehlo.multiply %520, %528 : tensor<4x32x32xf32>
    %530 = stablehlo.multiply %527, %31 : tensor<4x32x1xf32>
    %cst_125 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %531 = stablehlo.broadcast_in_dim %cst_125, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %532 = stablehlo.divide %530, %531 : tensor<4x32x1xf32>
    %cst_126 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %533 = stablehlo.reduce(%532 init: %cst_126) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %534 = stablehlo.broadcast_in_dim %533, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %535 = stablehlo.multiply %534, %21 : tensor<4x32x32xf32>
    %536 = stablehlo.add %529, %535 : tensor<4x32x32xf32>
    %537 = stablehlo.negate %536 : tensor<4x32x32xf32>
    %cst_127 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %538 = stablehlo.reduce(%537 init: %cst_127) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %539 = stablehlo.reshape %538 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %540 = stablehlo.add %478, %536 : tensor<4x32x32xf32>
    %cst_128 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %541 = stablehlo.broadcast_in_dim %cst_128, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %542 = stablehlo.divide %539, %541 : tensor<4x32x1xf32>
    %cst_129 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %543 = stablehlo.reduce(%542 init: %cst_129) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %544 = stablehlo.broadcast_in_dim %543, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
    %545 = stablehlo.add %540, %544 : tensor<4x32x32xf32>
    %cst_130 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %546 = stablehlo.reduce(%545 init: %cst_130) applies stablehlo.add across dimensions = [0] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<32x32xf32>
    %547 = stablehlo.reshape %546 : (tensor<32x32xf32>) -> tensor<1x32x32xf32>
    %cst_131 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %548 = stablehlo.reduce(%547 init: %cst_131) applies stablehlo.add across dimensions = [0] : (tensor<1x32x32xf32>, tensor<f32>) -> tensor<32x32xf32>
    %cst_132 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %549 = stablehlo.broadcast_in_dim %cst_132, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %550 = "stablehlo.scatter"(%549, %6, %545) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg41: tensor<f32>, %arg42: tensor<f32>):
      %963 = stablehlo.add %arg41, %arg42 : tensor<f32>
      stablehlo.return %963 : tensor<f32>
    }) : (tensor<64x32xf32>, tensor<4x32x1xi32>, tensor<4x32x32xf32>) -> tensor<64x32xf32>
    %551 = stablehlo.multiply %514, %514 : tensor<32x96xf32>
    %cst_133 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %552 = stablehlo.reduce(%551 init: %cst_133) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x96xf32>, tensor<f32>) -> tensor<f32>
    %cst_134 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %553 = stablehlo.add %cst_134, %552 : tensor<f32>
    %554 = stablehlo.multiply %524, %524 : tensor<2x32xf32>
    %cst_135 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %555 = stablehlo.reduce(%554 init: %cst_135) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x32xf32>, tensor<f32>) -> tensor<f32>
    %556 = stablehlo.add %553, %555 : tensor<f32>
    %557 = stablehlo.multiply %431, %431 : tensor<128x32xf32>
    %cst_136 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %558 = stablehlo.reduce(%557 init: %cst_136) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x32xf32>, tensor<f32>) -> tensor<f32>
    %559 = stablehlo.add %556, %558 : tensor<f32>
    %560 = stablehlo.multiply %480, %480 : tensor<32x32xf32>
    %cst_137 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %561 = stablehlo.reduce(%560 init: %cst_137) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<f32>
    %562 = stablehlo.add %559, %561 : tensor<f32>
    %563 = stablehlo.multiply %448, %448 : tensor<32x128xf32>
    %cst_138 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %564 = stablehlo.reduce(%563 init: %cst_138) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x128xf32>, tensor<f32>) -> tensor<f32>
    %565 = stablehlo.add %562, %564 : tensor<f32>
    %566 = stablehlo.multiply %398, %398 : tensor<32x96xf32>
    %cst_139 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %567 = stablehlo.reduce(%566 init: %cst_139) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x96xf32>, tensor<f32>) -> tensor<f32>
    %568 = stablehlo.add %565, %567 : tensor<f32>
    %569 = stablehlo.multiply %408, %408 : tensor<2x32xf32>
    %cst_140 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %570 = stablehlo.reduce(%569 init: %cst_140) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x32xf32>, tensor<f32>) -> tensor<f32>
    %571 = stablehlo.add %568, %570 : tensor<f32>
    %572 = stablehlo.multiply %315, %315 : tensor<128x32xf32>
    %cst_141 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %573 = stablehlo.reduce(%572 init: %cst_141) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x32xf32>, tensor<f32>) -> tensor<f32>
    %574 = stablehlo.add %571, %573 : tensor<f32>
    %575 = stablehlo.multiply %364, %364 : tensor<32x32xf32>
    %cst_142 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %576 = stablehlo.reduce(%575 init: %cst_142) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<f32>
    %577 = stablehlo.add %574, %576 : tensor<f32>
    %578 = stablehlo.multiply %332, %332 : tensor<32x128xf32>
    %cst_143 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %579 = stablehlo.reduce(%578 init: %cst_143) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x128xf32>, tensor<f32>) -> tensor<f32>
    %580 = stablehlo.add %577, %579 : tensor<f32>
    %581 = stablehlo.multiply %292, %292 : tensor<32x64xf32>
    %cst_144 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %582 = stablehlo.reduce(%581 init: %cst_144) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<f32>
    %583 = stablehlo.add %580, %582 : tensor<f32>
    %584 = stablehlo.multiply %548, %548 : tensor<32x32xf32>
    %cst_145 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %585 = stablehlo.reduce(%584 init: %cst_145) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<f32>
    %586 = stablehlo.add %583, %585 : tensor<f32>
    %587 = stablehlo.multiply %550, %550 : tensor<64x32xf32>
    %cst_146 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %588 = stablehlo.reduce(%587 init: %cst_146) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<f32>
    %589 = stablehlo.add %586, %588 : tensor<f32>
    %590 = stablehlo.sqrt %589 : tensor<f32>
    %cst_147 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %591 = stablehlo.divide %cst_147, %590 : tensor<f32>
    %cst_148 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %592 = stablehlo.minimum %cst_148, %591 : tensor<f32>
    %cst_149 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %593 = stablehlo.broadcast_in_dim %cst_149, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %594 = stablehlo.multiply %593, %arg13 : tensor<32x96xf32>
    %cst_150 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %595 = stablehlo.multiply %cst_150, %592 : tensor<f32>
    %596 = stablehlo.broadcast_in_dim %595, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %597 = stablehlo.multiply %596, %514 : tensor<32x96xf32>
    %598 = stablehlo.add %594, %597 : tensor<32x96xf32>
    %cst_151 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %599 = stablehlo.broadcast_in_dim %cst_151, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %600 = stablehlo.multiply %599, %arg14 : tensor<2x32xf32>
    %cst_152 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %601 = stablehlo.multiply %cst_152, %592 : tensor<f32>
    %602 = stablehlo.broadcast_in_dim %601, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %603 = stablehlo.multiply %602, %524 : tensor<2x32xf32>
    %604 = stablehlo.add %600, %603 : tensor<2x32xf32>
    %cst_153 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %605 = stablehlo.broadcast_in_dim %cst_153, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %606 = stablehlo.multiply %605, %arg15 : tensor<128x32xf32>
    %cst_154 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %607 = stablehlo.multiply %cst_154, %592 : tensor<f32>
    %608 = stablehlo.broadcast_in_dim %607, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %609 = stablehlo.multiply %608, %431 : tensor<128x32xf32>
    %610 = stablehlo.add %606, %609 : tensor<128x32xf32>
    %cst_155 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %611 = stablehlo.broadcast_in_dim %cst_155, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %612 = stablehlo.multiply %611, %arg16 : tensor<32x32xf32>
    %cst_156 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %613 = stablehlo.multiply %cst_156, %592 : tensor<f32>
    %614 = stablehlo.broadcast_in_dim %613, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %615 = stablehlo.multiply %614, %480 : tensor<32x32xf32>
    %616 = stablehlo.add %612, %615 : tensor<32x32xf32>
    %cst_157 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %617 = stablehlo.broadcast_in_dim %cst_157, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %618 = stablehlo.multiply %617, %arg17 : tensor<32x128xf32>
    %cst_158 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %619 = stablehlo.multiply %cst_158, %592 : tensor<f32>
    %620 = stablehlo.broadcast_in_dim %619, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %621 = stablehlo.multiply %620, %448 : tensor<32x128xf32>
    %622 = stablehlo.add %618, %621 : tensor<32x128xf32>
    %cst_159 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %623 = stablehlo.broadcast_in_dim %cst_159, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %624 = stablehlo.multiply %623, %arg18 : tensor<32x96xf32>
    %cst_160 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %625 = stablehlo.multiply %cst_160, %592 : tensor<f32>
    %626 = stablehlo.broadcast_in_dim %625, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %627 = stablehlo.multiply %626, %398 : tensor<32x96xf32>
    %628 = stablehlo.add %624, %627 : tensor<32x96xf32>
    %cst_161 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %629 = stablehlo.broadcast_in_dim %cst_161, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %630 = stablehlo.multiply %629, %arg19 : tensor<2x32xf32>
    %cst_162 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %631 = stablehlo.multiply %cst_162, %592 : tensor<f32>
    %632 = stablehlo.broadcast_in_dim %631, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %633 = stablehlo.multiply %632, %408 : tensor<2x32xf32>
    %634 = stablehlo.add %630, %633 : tensor<2x32xf32>
    %cst_163 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %635 = stablehlo.broadcast_in_dim %cst_163, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %636 = stablehlo.multiply %635, %arg20 : tensor<128x32xf32>
    %cst_164 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %637 = stablehlo.multiply %cst_164, %592 : tensor<f32>
    %638 = stablehlo.broadcast_in_dim %637, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %639 = stablehlo.multiply %638, %315 : tensor<128x32xf32>
    %640 = stablehlo.add %636, %639 : tensor<128x32xf32>
    %cst_165 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %641 = stablehlo.broadcast_in_dim %cst_165, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %642 = stablehlo.multiply %641, %arg21 : tensor<32x32xf32>
    %cst_166 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %643 = stablehlo.multiply %cst_166, %592 : tensor<f32>
    %644 = stablehlo.broadcast_in_dim %643, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %645 = stablehlo.multiply %644, %364 : tensor<32x32xf32>
    %646 = stablehlo.add %642, %645 : tensor<32x32xf32>
    %cst_167 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %647 = stablehlo.broadcast_in_dim %cst_167, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %648 = stablehlo.multiply %647, %arg22 : tensor<32x128xf32>
    %cst_168 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %649 = stablehlo.multiply %cst_168, %592 : tensor<f32>
    %650 = stablehlo.broadcast_in_dim %649, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %651 = stablehlo.multiply %650, %332 : tensor<32x128xf32>
    %652 = stablehlo.add %648, %651 : tensor<32x128xf32>
    %cst_169 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %653 = stablehlo.broadcast_in_dim %cst_169, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %654 = stablehlo.multiply %653, %arg23 : tensor<32x64xf32>
    %cst_170 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %655 = stablehlo.multiply %cst_170, %592 : tensor<f32>
    %656 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %657 = stablehlo.multiply %656, %292 : tensor<32x64xf32>
    %658 = stablehlo.add %654, %657 : tensor<32x64xf32>
    %cst_171 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %659 = stablehlo.broadcast_in_dim %cst_171, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %660 = stablehlo.multiply %659, %arg24 : tensor<32x32xf32>
    %cst_172 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %661 = stablehlo.multiply %cst_172, %592 : tensor<f32>
    %662 = stablehlo.broadcast_in_dim %661, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %663 = stablehlo.multiply %662, %548 : tensor<32x32xf32>
    %664 = stablehlo.add %660, %663 : tensor<32x32xf32>
    %cst_173 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %665 = stablehlo.broadcast_in_dim %cst_173, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %666 = stablehlo.multiply %665, %arg25 : tensor<64x32xf32>
    %cst_174 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %667 = stablehlo.multiply %cst_174, %592 : tensor<f32>
    %668 = stablehlo.broadcast_in_dim %667, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %669 = stablehlo.multiply %668, %550 : tensor<64x32xf32>
    %670 = stablehlo.add %666, %669 : tensor<64x32xf32>
    %cst_175 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %671 = stablehlo.broadcast_in_dim %cst_175, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %672 = stablehlo.multiply %671, %arg26 : tensor<32x96xf32>
    %673 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %674 = stablehlo.multiply %673, %514 : tensor<32x96xf32>
    %675 = stablehlo.multiply %674, %674 : tensor<32x96xf32>
    %cst_176 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %676 = stablehlo.broadcast_in_dim %cst_176, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %677 = stablehlo.multiply %676, %675 : tensor<32x96xf32>
    %678 = stablehlo.add %672, %677 : tensor<32x96xf32>
    %cst_177 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %679 = stablehlo.broadcast_in_dim %cst_177, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %680 = stablehlo.multiply %679, %arg27 : tensor<2x32xf32>
    %681 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %682 = stablehlo.multiply %681, %524 : tensor<2x32xf32>
    %683 = stablehlo.multiply %682, %682 : tensor<2x32xf32>
    %cst_178 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %684 = stablehlo.broadcast_in_dim %cst_178, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %685 = stablehlo.multiply %684, %683 : tensor<2x32xf32>
    %686 = stablehlo.add %680, %685 : tensor<2x32xf32>
    %cst_179 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %687 = stablehlo.broadcast_in_dim %cst_179, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %688 = stablehlo.multiply %687, %arg28 : tensor<128x32xf32>
    %689 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %690 = stablehlo.multiply %689, %431 : tensor<128x32xf32>
    %691 = stablehlo.multiply %690, %690 : tensor<128x32xf32>
    %cst_180 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %692 = stablehlo.broadcast_in_dim %cst_180, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %693 = stablehlo.multiply %692, %691 : tensor<128x32xf32>
    %694 = stablehlo.add %688, %693 : tensor<128x32xf32>
    %cst_181 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %695 = stablehlo.broadcast_in_dim %cst_181, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %696 = stablehlo.multiply %695, %arg29 : tensor<32x32xf32>
    %697 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %698 = stablehlo.multiply %697, %480 : tensor<32x32xf32>
    %699 = stablehlo.multiply %698, %698 : tensor<32x32xf32>
    %cst_182 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %700 = stablehlo.broadcast_in_dim %cst_182, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %701 = stablehlo.multiply %700, %699 : tensor<32x32xf32>
    %702 = stablehlo.add %696, %701 : tensor<32x32xf32>
    %cst_183 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %703 = stablehlo.broadcast_in_dim %cst_183, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %704 = stablehlo.multiply %703, %arg30 : tensor<32x128xf32>
    %705 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %706 = stablehlo.multiply %705, %448 : tensor<32x128xf32>
    %707 = stablehlo.multiply %706, %706 : tensor<32x128xf32>
    %cst_184 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %708 = stablehlo.broadcast_in_dim %cst_184, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %709 = stablehlo.multiply %708, %707 : tensor<32x128xf32>
    %710 = stablehlo.add %704, %709 : tensor<32x128xf32>
    %cst_185 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %711 = stablehlo.broadcast_in_dim %cst_185, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %712 = stablehlo.multiply %711, %arg31 : tensor<32x96xf32>
    %713 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %714 = stablehlo.multiply %713, %398 : tensor<32x96xf32>
    %715 = stablehlo.multiply %714, %714 : tensor<32x96xf32>
    %cst_186 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %716 = stablehlo.broadcast_in_dim %cst_186, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %717 = stablehlo.multiply %716, %715 : tensor<32x96xf32>
    %718 = stablehlo.add %712, %717 : tensor<32x96xf32>
    %cst_187 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %719 = stablehlo.broadcast_in_dim %cst_187, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %720 = stablehlo.multiply %719, %arg32 : tensor<2x32xf32>
    %721 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %722 = stablehlo.multiply %721, %408 : tensor<2x32xf32>
    %723 = stablehlo.multiply %722, %722 : tensor<2x32xf32>
    %cst_188 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %724 = stablehlo.broadcast_in_dim %cst_188, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %725 = stablehlo.multiply %724, %723 : tensor<2x32xf32>
    %726 = stablehlo.add %720, %725 : tensor<2x32xf32>
    %cst_189 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %727 = stablehlo.broadcast_in_dim %cst_189, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %728 = stablehlo.multiply %727, %arg33 : tensor<128x32xf32>
    %729 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %730 = stablehlo.multiply %729, %315 : tensor<128x32xf32>
    %731 = stablehlo.multiply %730, %730 : tensor<128x32xf32>
    %cst_190 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %732 = stablehlo.broadcast_in_dim %cst_190, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %733 = stablehlo.multiply %732, %731 : tensor<128x32xf32>
    %734 = stablehlo.add %728, %733 : tensor<128x32xf32>
    %cst_191 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %735 = stablehlo.broadcast_in_dim %cst_191, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %736 = stablehlo.multiply %735, %arg34 : tensor<32x32xf32>
    %737 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %738 = stablehlo.multiply %737, %364 : tensor<32x32xf32>
    %739 = stablehlo.multiply %738, %738 : tensor<32x32xf32>
    %cst_192 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %740 = stablehlo.broadcast_in_dim %cst_192, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %741 = stablehlo.multiply %740, %739 : tensor<32x32xf32>
    %742 = stablehlo.add %736, %741 : tensor<32x32xf32>
    %cst_193 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %743 = stablehlo.broadcast_in_dim %cst_193, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %744 = stablehlo.multiply %743, %arg35 : tensor<32x128xf32>
    %745 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %746 = stablehlo.multiply %745, %332 : tensor<32x128xf32>
    %747 = stablehlo.multiply %746, %746 : tensor<32x128xf32>
    %cst_194 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %748 = stablehlo.broadcast_in_dim %cst_194, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %749 = stablehlo.multiply %748, %747 : tensor<32x128xf32>
    %750 = stablehlo.add %744, %749 : tensor<32x128xf32>
    %cst_195 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %751 = stablehlo.broadcast_in_dim %cst_195, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %752 = stablehlo.multiply %751, %arg36 : tensor<32x64xf32>
    %753 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %754 = stablehlo.multiply %753, %292 : tensor<32x64xf32>
    %755 = stablehlo.multiply %754, %754 : tensor<32x64xf32>
    %cst_196 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %756 = stablehlo.broadcast_in_dim %cst_196, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %757 = stablehlo.multiply %756, %755 : tensor<32x64xf32>
    %758 = stablehlo.add %752, %757 : tensor<32x64xf32>
    %cst_197 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %759 = stablehlo.broadcast_in_dim %cst_197, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %760 = stablehlo.multiply %759, %arg37 : tensor<32x32xf32>
    %761 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %762 = stablehlo.multiply %761, %548 : tensor<32x32xf32>
    %763 = stablehlo.multiply %762, %762 : tensor<32x32xf32>
    %cst_198 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %764 = stablehlo.broadcast_in_dim %cst_198, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %765 = stablehlo.multiply %764, %763 : tensor<32x32xf32>
    %766 = stablehlo.add %760, %765 : tensor<32x32xf32>
    %cst_199 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %767 = stablehlo.broadcast_in_dim %cst_199, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %768 = stablehlo.multiply %767, %arg38 : tensor<64x32xf32>
    %769 = stablehlo.broadcast_in_dim %592, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %770 = stablehlo.multiply %769, %550 : tensor<64x32xf32>
    %771 = stablehlo.multiply %770, %770 : tensor<64x32xf32>
    %cst_200 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %772 = stablehlo.broadcast_in_dim %cst_200, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %773 = stablehlo.multiply %772, %771 : tensor<64x32xf32>
    %774 = stablehlo.add %768, %773 : tensor<64x32xf32>
    %c_201 = stablehlo.constant dense<1> : tensor<i32>
    %775 = stablehlo.add %arg39, %c_201 : tensor<i32>
    %776 = stablehlo.convert %775 : (tensor<i32>) -> tensor<f32>
    %cst_202 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %777 = stablehlo.power %cst_202, %776 : tensor<f32>
    %cst_203 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %778 = stablehlo.subtract %cst_203, %777 : tensor<f32>
    %cst_204 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %779 = stablehlo.power %cst_204, %776 : tensor<f32>
    %cst_205 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %780 = stablehlo.subtract %cst_205, %779 : tensor<f32>
    %781 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %782 = stablehlo.divide %598, %781 : tensor<32x96xf32>
    %783 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %784 = stablehlo.divide %678, %783 : tensor<32x96xf32>
    %785 = stablehlo.sqrt %784 : tensor<32x96xf32>
    %cst_206 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %786 = stablehlo.broadcast_in_dim %cst_206, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %787 = stablehlo.add %785, %786 : tensor<32x96xf32>
    %788 = stablehlo.divide %782, %787 : tensor<32x96xf32>
    %cst_207 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %789 = stablehlo.broadcast_in_dim %cst_207, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %790 = stablehlo.multiply %789, %arg0 : tensor<32x96xf32>
    %791 = stablehlo.add %788, %790 : tensor<32x96xf32>
    %cst_208 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %792 = stablehlo.broadcast_in_dim %cst_208, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %793 = stablehlo.multiply %792, %791 : tensor<32x96xf32>
    %794 = stablehlo.subtract %arg0, %793 : tensor<32x96xf32>
    %795 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %796 = stablehlo.divide %604, %795 : tensor<2x32xf32>
    %797 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %798 = stablehlo.divide %686, %797 : tensor<2x32xf32>
    %799 = stablehlo.sqrt %798 : tensor<2x32xf32>
    %cst_209 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %800 = stablehlo.broadcast_in_dim %cst_209, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %801 = stablehlo.add %799, %800 : tensor<2x32xf32>
    %802 = stablehlo.divide %796, %801 : tensor<2x32xf32>
    %cst_210 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %803 = stablehlo.broadcast_in_dim %cst_210, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %804 = stablehlo.multiply %803, %arg1 : tensor<2x32xf32>
    %805 = stablehlo.add %802, %804 : tensor<2x32xf32>
    %cst_211 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %806 = stablehlo.broadcast_in_dim %cst_211, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %807 = stablehlo.multiply %806, %805 : tensor<2x32xf32>
    %808 = stablehlo.subtract %arg1, %807 : tensor<2x32xf32>
    %809 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %810 = stablehlo.divide %610, %809 : tensor<128x32xf32>
    %811 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %812 = stablehlo.divide %694, %811 : tensor<128x32xf32>
    %813 = stablehlo.sqrt %812 : tensor<128x32xf32>
    %cst_212 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %814 = stablehlo.broadcast_in_dim %cst_212, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %815 = stablehlo.add %813, %814 : tensor<128x32xf32>
    %816 = stablehlo.divide %810, %815 : tensor<128x32xf32>
    %cst_213 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %817 = stablehlo.broadcast_in_dim %cst_213, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %818 = stablehlo.multiply %817, %arg2 : tensor<128x32xf32>
    %819 = stablehlo.add %816, %818 : tensor<128x32xf32>
    %cst_214 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %820 = stablehlo.broadcast_in_dim %cst_214, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %821 = stablehlo.multiply %820, %819 : tensor<128x32xf32>
    %822 = stablehlo.subtract %arg2, %821 : tensor<128x32xf32>
    %823 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %824 = stablehlo.divide %616, %823 : tensor<32x32xf32>
    %825 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %826 = stablehlo.divide %702, %825 : tensor<32x32xf32>
    %827 = stablehlo.sqrt %826 : tensor<32x32xf32>
    %cst_215 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %828 = stablehlo.broadcast_in_dim %cst_215, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %829 = stablehlo.add %827, %828 : tensor<32x32xf32>
    %830 = stablehlo.divide %824, %829 : tensor<32x32xf32>
    %cst_216 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %831 = stablehlo.broadcast_in_dim %cst_216, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %832 = stablehlo.multiply %831, %arg3 : tensor<32x32xf32>
    %833 = stablehlo.add %830, %832 : tensor<32x32xf32>
    %cst_217 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %834 = stablehlo.broadcast_in_dim %cst_217, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %835 = stablehlo.multiply %834, %833 : tensor<32x32xf32>
    %836 = stablehlo.subtract %arg3, %835 : tensor<32x32xf32>
    %837 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %838 = stablehlo.divide %622, %837 : tensor<32x128xf32>
    %839 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %840 = stablehlo.divide %710, %839 : tensor<32x128xf32>
    %841 = stablehlo.sqrt %840 : tensor<32x128xf32>
    %cst_218 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %842 = stablehlo.broadcast_in_dim %cst_218, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %843 = stablehlo.add %841, %842 : tensor<32x128xf32>
    %844 = stablehlo.divide %838, %843 : tensor<32x128xf32>
    %cst_219 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %845 = stablehlo.broadcast_in_dim %cst_219, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %846 = stablehlo.multiply %845, %arg4 : tensor<32x128xf32>
    %847 = stablehlo.add %844, %846 : tensor<32x128xf32>
    %cst_220 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %848 = stablehlo.broadcast_in_dim %cst_220, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %849 = stablehlo.multiply %848, %847 : tensor<32x128xf32>
    %850 = stablehlo.subtract %arg4, %849 : tensor<32x128xf32>
    %851 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %852 = stablehlo.divide %628, %851 : tensor<32x96xf32>
    %853 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %854 = stablehlo.divide %718, %853 : tensor<32x96xf32>
    %855 = stablehlo.sqrt %854 : tensor<32x96xf32>
    %cst_221 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %856 = stablehlo.broadcast_in_dim %cst_221, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %857 = stablehlo.add %855, %856 : tensor<32x96xf32>
    %858 = stablehlo.divide %852, %857 : tensor<32x96xf32>
    %cst_222 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %859 = stablehlo.broadcast_in_dim %cst_222, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %860 = stablehlo.multiply %859, %arg5 : tensor<32x96xf32>
    %861 = stablehlo.add %858, %860 : tensor<32x96xf32>
    %cst_223 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %862 = stablehlo.broadcast_in_dim %cst_223, dims = [] : (tensor<f32>) -> tensor<32x96xf32>
    %863 = stablehlo.multiply %862, %861 : tensor<32x96xf32>
    %864 = stablehlo.subtract %arg5, %863 : tensor<32x96xf32>
    %865 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %866 = stablehlo.divide %634, %865 : tensor<2x32xf32>
    %867 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %868 = stablehlo.divide %726, %867 : tensor<2x32xf32>
    %869 = stablehlo.sqrt %868 : tensor<2x32xf32>
    %cst_224 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %870 = stablehlo.broadcast_in_dim %cst_224, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %871 = stablehlo.add %869, %870 : tensor<2x32xf32>
    %872 = stablehlo.divide %866, %871 : tensor<2x32xf32>
    %cst_225 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %873 = stablehlo.broadcast_in_dim %cst_225, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %874 = stablehlo.multiply %873, %arg6 : tensor<2x32xf32>
    %875 = stablehlo.add %872, %874 : tensor<2x32xf32>
    %cst_226 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %876 = stablehlo.broadcast_in_dim %cst_226, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %877 = stablehlo.multiply %876, %875 : tensor<2x32xf32>
    %878 = stablehlo.subtract %arg6, %877 : tensor<2x32xf32>
    %879 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %880 = stablehlo.divide %640, %879 : tensor<128x32xf32>
    %881 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %882 = stablehlo.divide %734, %881 : tensor<128x32xf32>
    %883 = stablehlo.sqrt %882 : tensor<128x32xf32>
    %cst_227 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %884 = stablehlo.broadcast_in_dim %cst_227, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %885 = stablehlo.add %883, %884 : tensor<128x32xf32>
    %886 = stablehlo.divide %880, %885 : tensor<128x32xf32>
    %cst_228 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %887 = stablehlo.broadcast_in_dim %cst_228, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %888 = stablehlo.multiply %887, %arg7 : tensor<128x32xf32>
    %889 = stablehlo.add %886, %888 : tensor<128x32xf32>
    %cst_229 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %890 = stablehlo.broadcast_in_dim %cst_229, dims = [] : (tensor<f32>) -> tensor<128x32xf32>
    %891 = stablehlo.multiply %890, %889 : tensor<128x32xf32>
    %892 = stablehlo.subtract %arg7, %891 : tensor<128x32xf32>
    %893 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %894 = stablehlo.divide %646, %893 : tensor<32x32xf32>
    %895 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %896 = stablehlo.divide %742, %895 : tensor<32x32xf32>
    %897 = stablehlo.sqrt %896 : tensor<32x32xf32>
    %cst_230 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %898 = stablehlo.broadcast_in_dim %cst_230, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %899 = stablehlo.add %897, %898 : tensor<32x32xf32>
    %900 = stablehlo.divide %894, %899 : tensor<32x32xf32>
    %cst_231 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %901 = stablehlo.broadcast_in_dim %cst_231, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %902 = stablehlo.multiply %901, %arg8 : tensor<32x32xf32>
    %903 = stablehlo.add %900, %902 : tensor<32x32xf32>
    %cst_232 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %904 = stablehlo.broadcast_in_dim %cst_232, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %905 = stablehlo.multiply %904, %903 : tensor<32x32xf32>
    %906 = stablehlo.subtract %arg8, %905 : tensor<32x32xf32>
    %907 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %908 = stablehlo.divide %652, %907 : tensor<32x128xf32>
    %909 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %910 = stablehlo.divide %750, %909 : tensor<32x128xf32>
    %911 = stablehlo.sqrt %910 : tensor<32x128xf32>
    %cst_233 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %912 = stablehlo.broadcast_in_dim %cst_233, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %913 = stablehlo.add %911, %912 : tensor<32x128xf32>
    %914 = stablehlo.divide %908, %913 : tensor<32x128xf32>
    %cst_234 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %915 = stablehlo.broadcast_in_dim %cst_234, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %916 = stablehlo.multiply %915, %arg9 : tensor<32x128xf32>
    %917 = stablehlo.add %914, %916 : tensor<32x128xf32>
    %cst_235 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %918 = stablehlo.broadcast_in_dim %cst_235, dims = [] : (tensor<f32>) -> tensor<32x128xf32>
    %919 = stablehlo.multiply %918, %917 : tensor<32x128xf32>
    %920 = stablehlo.subtract %arg9, %919 : tensor<32x128xf32>
    %921 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %922 = stablehlo.divide %658, %921 : tensor<32x64xf32>
    %923 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %924 = stablehlo.divide %758, %923 : tensor<32x64xf32>
    %925 = stablehlo.sqrt %924 : tensor<32x64xf32>
    %cst_236 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %926 = stablehlo.broadcast_in_dim %cst_236, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %927 = stablehlo.add %925, %926 : tensor<32x64xf32>
    %928 = stablehlo.divide %922, %927 : tensor<32x64xf32>
    %cst_237 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %929 = stablehlo.broadcast_in_dim %cst_237, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %930 = stablehlo.multiply %929, %arg10 : tensor<32x64xf32>
    %931 = stablehlo.add %928, %930 : tensor<32x64xf32>
    %cst_238 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %932 = stablehlo.broadcast_in_dim %cst_238, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %933 = stablehlo.multiply %932, %931 : tensor<32x64xf32>
    %934 = stablehlo.subtract %arg10, %933 : tensor<32x64xf32>
    %935 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %936 = stablehlo.divide %664, %935 : tensor<32x32xf32>
    %937 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %938 = stablehlo.divide %766, %937 : tensor<32x32xf32>
    %939 = stablehlo.sqrt %938 : tensor<32x32xf32>
    %cst_239 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %940 = stablehlo.broadcast_in_dim %cst_239, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %941 = stablehlo.add %939, %940 : tensor<32x32xf32>
    %942 = stablehlo.divide %936, %941 : tensor<32x32xf32>
    %cst_240 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %943 = stablehlo.broadcast_in_dim %cst_240, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %944 = stablehlo.multiply %943, %arg11 : tensor<32x32xf32>
    %945 = stablehlo.add %942, %944 : tensor<32x32xf32>
    %cst_241 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %946 = stablehlo.broadcast_in_dim %cst_241, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %947 = stablehlo.multiply %946, %945 : tensor<32x32xf32>
    %948 = stablehlo.subtract %arg11, %947 : tensor<32x32xf32>
    %949 = stablehlo.broadcast_in_dim %778, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %950 = stablehlo.divide %670, %949 : tensor<64x32xf32>
    %951 = stablehlo.broadcast_in_dim %780, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %952 = stablehlo.divide %774, %951 : tensor<64x32xf32>
    %953 = stablehlo.sqrt %952 : tensor<64x32xf32>
    %cst_242 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %954 = stablehlo.broadcast_in_dim %cst_242, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %955 = stablehlo.add %953, %954 : tensor<64x32xf32>
    %956 = stablehlo.divide %950, %955 : tensor<64x32xf32>
    %cst_243 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %957 = stablehlo.broadcast_in_dim %cst_243, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %958 = stablehlo.multiply %957, %arg12 : tensor<64x32xf32>
    %959 = stablehlo.add %956, %958 : tensor<64x32xf32>
    %cst_244 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %960 = stablehlo.broadcast_in_dim %cst_244, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %961 = stablehlo.multiply %960, %959 : tensor<64x32xf32>
    %962 = stablehlo.subtract %arg12, %961 : tensor<64x32xf32>
    return %598, %604, %610, %616, %622, %628, %634, %640, %646, %652, %658, %664, %670, %590, %285, %678, %686, %694, %702, %710, %718, %726, %734, %742, %750, %758, %766, %774, %794, %808, %822, %836, %850, %864, %878, %892, %906, %920, %934, %948, %962 : tensor<32x96xf32>, tensor<2x32xf32>, tensor<128x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<32x96xf32>, tensor<2x32xf32>, tensor<128x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<32x64xf32>, tensor<32x32xf32>, tensor<64x32xf32>, tensor<f32>, tensor<f32>, tensor<32x96xf32>, tensor<2x32xf32>, tensor<128x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<32x96xf32>, tensor<2x32xf32>, tensor<128x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<32x64xf32>, tensor<32x32xf32>, tensor<64x32xf32>, tensor<32x96xf32>, tensor<2x32xf32>, tensor<128x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<32x96xf32>, tensor<2x32xf32>, tensor<128x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<32x64xf32>, tensor<32x32xf32>, tensor<64x32xf32>
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
  func.func private @_where(%arg0: tensor<32x32xi1>, %arg1: tensor<4x4x32x32xf32>, %arg2: tensor<f32>) -> (tensor<4x4x32x32xf32>, tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<32x32xi1>) -> tensor<4x4x32x32xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    return %3, %1, %4 : tensor<4x4x32x32xf32>, tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>
  }
  func.func private @log_softmax(%arg0: tensor<4x32x64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32x64xf32>, tensor<4x32x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<4x32x64xf32>, tensor<f32>) -> tensor<4x32xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<4x32xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x64xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x32x64xf32>
    %6 = stablehlo.exponential %5 : tensor<4x32x64xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<4x32x64xf32>, tensor<f32>) -> tensor<4x32xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %9 = stablehlo.log %8 : tensor<4x32x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x64xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<4x32x64xf32>
    return %11, %6, %8 : tensor<4x32x64xf32>, tensor<4x32x64xf32>, tensor<4x32x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x32x64xf32>, %arg1: tensor<4x32x1xi32>) -> (tensor<4x32x1xf32>, tensor<4x32x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x32x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x32x1xi32>, tensor<4x32x1xi32>) -> tensor<4x32x1xi1>
    %c_0 = stablehlo.constant dense<64> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x32x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4x32x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4x32x1xi1>, tensor<4x32x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x32x1xi32>) -> tensor<4x32x1x1xi32>
    %c_1 = stablehlo.constant dense<63> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x32x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x32x1x1xi32>, tensor<4x32x1x1xi32>) -> tensor<4x32x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<4x32x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<4x32x1x1xi32>, tensor<4x32x1x1xi32>) -> tensor<4x32x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<4x32x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<4x32x1x1xi1>, tensor<i1>) -> tensor<4x32x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x32x64xf32>, tensor<4x32x1x1xi32>) -> tensor<4x32x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x32x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<4x32x1xi1>, tensor<4x32x1xf32>
    return %15, %5 : tensor<4x32x1xf32>, tensor<4x32x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<4x32x1x1xi32>, %arg1: tensor<4x32x1xf32>) -> tensor<4x32x64xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x32x64xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x32x64xf32>, tensor<4x32x1x1xi32>, tensor<4x32x1xf32>) -> tensor<4x32x64xf32>
    return %1 : tensor<4x32x64xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<4x32x64xf32>, %arg1: tensor<4x32x1xf32>, %arg2: tensor<4x32x64xf32>) -> tensor<4x32x64xf32> {
    %0 = stablehlo.negate %arg2 : tensor<4x32x64xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x32x64xf32>, tensor<f32>) -> tensor<4x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<4x32x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<4x32x1xf32>, tensor<f32>) -> tensor<4x32xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x64xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<4x32x64xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<4x32x64xf32>
    return %7 : tensor<4x32x64xf32>
  }
  func.func private @_where_2(%arg0: tensor<4x4x32x32xi1>, %arg1: tensor<4x4x32x32xf32>, %arg2: tensor<4x4x32x32xf32>) -> tensor<4x4x32x32xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4x32x32xf32>
    %1 = stablehlo.select %arg0, %arg2, %0 : tensor<4x4x32x32xi1>, tensor<4x4x32x32xf32>
    return %1 : tensor<4x4x32x32xf32>
  }
}
