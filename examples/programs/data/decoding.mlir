module @jit_decoding attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x96xf32>, %arg1: tensor<2x32xf32>, %arg2: tensor<128x32xf32>, %arg3: tensor<32x32xf32>, %arg4: tensor<32x128xf32>, %arg5: tensor<32x96xf32>, %arg6: tensor<2x32xf32>, %arg7: tensor<128x32xf32>, %arg8: tensor<32x32xf32>, %arg9: tensor<32x128xf32>, %arg10: tensor<32x64xf32>, %arg11: tensor<96x32xf32>, %arg12: tensor<64x32xf32>, %arg13: tensor<8xi32>) -> (tensor<64xf32> {jax.result_info = "result['logits']"}, tensor<97xi32> {jax.result_info = "result['text']"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x4x96x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<97xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %3 = "stablehlo.scatter"(%1, %2, %arg13) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg14: tensor<i32>, %arg15: tensor<i32>):
      stablehlo.return %arg15 : tensor<i32>
    }) : (tensor<97xi32>, tensor<1xi32>, tensor<8xi32>) -> tensor<97xi32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %5:18 = stablehlo.while(%iterArg = %arg12, %iterArg_4 = %arg11, %iterArg_5 = %arg1, %iterArg_6 = %arg0, %iterArg_7 = %arg3, %iterArg_8 = %arg4, %iterArg_9 = %arg2, %iterArg_10 = %arg6, %iterArg_11 = %arg5, %iterArg_12 = %arg8, %iterArg_13 = %arg9, %iterArg_14 = %arg7, %iterArg_15 = %arg10, %iterArg_16 = %c_3, %iterArg_17 = %c_2, %iterArg_18 = %3, %iterArg_19 = %0, %iterArg_20 = %4) : tensor<64x32xf32>, tensor<96x32xf32>, tensor<2x32xf32>, tensor<32x96xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>, tensor<2x32xf32>, tensor<32x96xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>, tensor<32x64xf32>, tensor<i32>, tensor<i32>, tensor<97xi32>, tensor<2x2x4x96x8xf32>, tensor<64xf32>
    cond {
      %c_21 = stablehlo.constant dense<96> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_16, %c_21, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6:4 = func.call @closed_call(%iterArg, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20) : (tensor<64x32xf32>, tensor<96x32xf32>, tensor<2x32xf32>, tensor<32x96xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>, tensor<2x32xf32>, tensor<32x96xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>, tensor<32x64xf32>, tensor<i32>, tensor<97xi32>, tensor<2x2x4x96x8xf32>, tensor<64xf32>) -> (tensor<i32>, tensor<97xi32>, tensor<2x2x4x96x8xf32>, tensor<64xf32>)
      %c_21 = stablehlo.constant dense<1> : tensor<i32>
      %7 = stablehlo.add %iterArg_16, %c_21 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %7, %6#0, %6#1, %6#2, %6#3 : tensor<64x32xf32>, tensor<96x32xf32>, tensor<2x32xf32>, tensor<32x96xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>, tensor<2x32xf32>, tensor<32x96xf32>, tensor<32x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>, tensor<32x64xf32>, tensor<i32>, tensor<i32>, tensor<97xi32>, tensor<2x2x4x96x8xf32>, tensor<64xf32>
    }
    return %5#17, %5#15 : tensor<64xf32>, tensor<97xi32>
  }
  func.func private @closed_call(%arg0: tensor<64x32xf32>, %arg1: tensor<96x32xf32>, %arg2: tensor<2x32xf32>, %arg3: tensor<32x96xf32>, %arg4: tensor<32x32xf32>, %arg5: tensor<32x128xf32>, %arg6: tensor<128x32xf32>, %arg7: tensor<2x32xf32>, %arg8: tensor<32x96xf32>, %arg9: tensor<32x32xf32>, %arg10: tensor<32x128xf32>, %arg11: tensor<128x32xf32>, %arg12: tensor<32x64xf32>, %arg13: tensor<i32>, %arg14: tensor<97xi32>, %arg15: tensor<2x2x4x96x8xf32>, %arg16: tensor<64xf32>) -> (tensor<i32>, tensor<97xi32>, tensor<2x2x4x96x8xf32>, tensor<64xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg13, %c : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare LT, %arg13, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.convert %arg13 : tensor<i32>
    %c_1 = stablehlo.constant dense<97> : tensor<i32>
    %3 = stablehlo.add %2, %c_1 : tensor<i32>
    %4 = stablehlo.select %1, %3, %arg13 : tensor<i1>, tensor<i32>
    %5 = stablehlo.dynamic_slice %arg14, %4, sizes = [1] : (tensor<97xi32>, tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.reshape %5 : (tensor<1xi32>) -> tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.compare LT, %6, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_3 = stablehlo.constant dense<64> : tensor<i32>
    %8 = stablehlo.add %6, %c_3 : tensor<i32>
    %9 = stablehlo.select %7, %8, %6 : tensor<i1>, tensor<i32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.compare LT, %c_4, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %c_7 = stablehlo.constant dense<32> : tensor<i32>
    %11 = stablehlo.add %c_6, %c_7 : tensor<i32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.select %10, %11, %c_8 : tensor<i1>, tensor<i32>
    %13 = stablehlo.dynamic_slice %arg0, %9, %12, sizes = [1, 32] : (tensor<64x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %14 = stablehlo.reshape %13 : (tensor<1x32xf32>) -> tensor<32xf32>
    %15 = stablehlo.convert %arg13 : tensor<i32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %16 = stablehlo.compare LT, %15, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_10 = stablehlo.constant dense<96> : tensor<i32>
    %17 = stablehlo.add %15, %c_10 : tensor<i32>
    %18 = stablehlo.select %16, %17, %15 : tensor<i1>, tensor<i32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %c_12 = stablehlo.constant dense<0> : tensor<i32>
    %19 = stablehlo.compare LT, %c_11, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %c_14 = stablehlo.constant dense<32> : tensor<i32>
    %20 = stablehlo.add %c_13, %c_14 : tensor<i32>
    %c_15 = stablehlo.constant dense<0> : tensor<i32>
    %21 = stablehlo.select %19, %20, %c_15 : tensor<i1>, tensor<i32>
    %22 = stablehlo.dynamic_slice %arg1, %18, %21, sizes = [1, 32] : (tensor<96x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %23 = stablehlo.reshape %22 : (tensor<1x32xf32>) -> tensor<32xf32>
    %24 = stablehlo.add %14, %23 : tensor<32xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %26 = stablehlo.iota dim = 0 : tensor<96xi32>
    %27 = stablehlo.convert %arg13 : tensor<i32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<i32>) -> tensor<96xi32>
    %29 = stablehlo.compare LE, %26, %28, SIGNED : (tensor<96xi32>, tensor<96xi32>) -> tensor<96xi1>
    %30 = stablehlo.broadcast_in_dim %29, dims = [1] : (tensor<96xi1>) -> tensor<1x96xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %31 = stablehlo.reduce(%25 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_16 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %34 = stablehlo.divide %32, %33 : tensor<1x1xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %36 = stablehlo.subtract %25, %35 : tensor<1x32xf32>
    %37 = stablehlo.multiply %36, %36 : tensor<1x32xf32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.reduce(%37 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_18 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %41 = stablehlo.divide %39, %40 : tensor<1x1xf32>
    %cst_19 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %43 = stablehlo.add %41, %42 : tensor<1x1xf32>
    %44 = stablehlo.rsqrt %43 : tensor<1x1xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %46 = stablehlo.multiply %36, %45 : tensor<1x32xf32>
    %47 = stablehlo.slice %arg2 [0:1, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %48 = stablehlo.reshape %47 : (tensor<1x32xf32>) -> tensor<32xf32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %50 = stablehlo.multiply %46, %49 : tensor<1x32xf32>
    %51 = stablehlo.dot_general %50, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32xf32>, tensor<32x96xf32>) -> tensor<1x96xf32>
    %52 = stablehlo.slice %51 [0:1, 0:32] : (tensor<1x96xf32>) -> tensor<1x32xf32>
    %53 = stablehlo.slice %51 [0:1, 32:64] : (tensor<1x96xf32>) -> tensor<1x32xf32>
    %54 = stablehlo.slice %51 [0:1, 64:96] : (tensor<1x96xf32>) -> tensor<1x32xf32>
    %55 = stablehlo.reshape %52 : (tensor<1x32xf32>) -> tensor<1x4x8xf32>
    %56 = stablehlo.transpose %55, dims = [1, 0, 2] : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
    %57 = stablehlo.reshape %53 : (tensor<1x32xf32>) -> tensor<1x4x8xf32>
    %58 = stablehlo.transpose %57, dims = [1, 0, 2] : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
    %59 = stablehlo.reshape %54 : (tensor<1x32xf32>) -> tensor<1x4x8xf32>
    %60 = stablehlo.transpose %59, dims = [1, 0, 2] : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
    %61 = stablehlo.broadcast_in_dim %58, dims = [1, 2, 3] : (tensor<4x1x8xf32>) -> tensor<1x4x1x8xf32>
    %62 = stablehlo.broadcast_in_dim %60, dims = [1, 2, 3] : (tensor<4x1x8xf32>) -> tensor<1x4x1x8xf32>
    %63 = stablehlo.concatenate %61, %62, dim = 0 : (tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>) -> tensor<2x4x1x8xf32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [1, 2, 3, 4] : (tensor<2x4x1x8xf32>) -> tensor<1x2x4x1x8xf32>
    %c_20 = stablehlo.constant dense<0> : tensor<i32>
    %65 = stablehlo.compare LT, %arg13, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %66 = stablehlo.convert %arg13 : tensor<i32>
    %c_21 = stablehlo.constant dense<96> : tensor<i32>
    %67 = stablehlo.add %66, %c_21 : tensor<i32>
    %68 = stablehlo.select %65, %67, %arg13 : tensor<i1>, tensor<i32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %c_23 = stablehlo.constant dense<0> : tensor<i32>
    %c_24 = stablehlo.constant dense<0> : tensor<i32>
    %c_25 = stablehlo.constant dense<0> : tensor<i32>
    %69 = stablehlo.dynamic_update_slice %arg15, %64, %c_22, %c_23, %c_24, %68, %c_25 : (tensor<2x2x4x96x8xf32>, tensor<1x2x4x1x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x4x96x8xf32>
    %70 = stablehlo.slice %69 [0:1, 0:1, 0:4, 0:96, 0:8] : (tensor<2x2x4x96x8xf32>) -> tensor<1x1x4x96x8xf32>
    %71 = stablehlo.reshape %70 : (tensor<1x1x4x96x8xf32>) -> tensor<4x96x8xf32>
    %72 = stablehlo.slice %69 [0:1, 1:2, 0:4, 0:96, 0:8] : (tensor<2x2x4x96x8xf32>) -> tensor<1x1x4x96x8xf32>
    %73 = stablehlo.reshape %72 : (tensor<1x1x4x96x8xf32>) -> tensor<4x96x8xf32>
    %74 = stablehlo.transpose %71, dims = [0, 2, 1] : (tensor<4x96x8xf32>) -> tensor<4x8x96xf32>
    %75 = stablehlo.dot_general %56, %74, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x1x8xf32>, tensor<4x8x96xf32>) -> tensor<4x1x96xf32>
    %cst_26 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<4x1x96xf32>
    %77 = stablehlo.multiply %75, %76 : tensor<4x1x96xf32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %78 = call @_where(%30, %77, %cst_27) : (tensor<1x96xi1>, tensor<4x1x96xf32>, tensor<f32>) -> tensor<4x1x96xf32>
    %cst_28 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %79 = stablehlo.reduce(%78 init: %cst_28) applies stablehlo.maximum across dimensions = [2] : (tensor<4x1x96xf32>, tensor<f32>) -> tensor<4x1xf32>
    %cst_29 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %81 = stablehlo.maximum %80, %79 : tensor<4x1xf32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [0, 1, 2] : (tensor<4x1x1xf32>) -> tensor<4x1x96xf32>
    %84 = stablehlo.subtract %78, %83 : tensor<4x1x96xf32>
    %85 = stablehlo.exponential %84 : tensor<4x1x96xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %86 = stablehlo.reduce(%85 init: %cst_30) applies stablehlo.add across dimensions = [2] : (tensor<4x1x96xf32>, tensor<f32>) -> tensor<4x1xf32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [0, 1, 2] : (tensor<4x1x1xf32>) -> tensor<4x1x96xf32>
    %89 = stablehlo.divide %85, %88 : tensor<4x1x96xf32>
    %90 = stablehlo.dot_general %89, %73, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x1x96xf32>, tensor<4x96x8xf32>) -> tensor<4x1x8xf32>
    %91 = stablehlo.transpose %90, dims = [1, 0, 2] : (tensor<4x1x8xf32>) -> tensor<1x4x8xf32>
    %92 = stablehlo.reshape %91 : (tensor<1x4x8xf32>) -> tensor<1x32xf32>
    %93 = stablehlo.dot_general %92, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32xf32>, tensor<32x32xf32>) -> tensor<1x32xf32>
    %94 = stablehlo.add %25, %93 : tensor<1x32xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %95 = stablehlo.reduce(%94 init: %cst_31) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %96 = stablehlo.broadcast_in_dim %95, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_32 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %97 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %98 = stablehlo.divide %96, %97 : tensor<1x1xf32>
    %99 = stablehlo.broadcast_in_dim %98, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %100 = stablehlo.subtract %94, %99 : tensor<1x32xf32>
    %101 = stablehlo.multiply %100, %100 : tensor<1x32xf32>
    %cst_33 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %102 = stablehlo.reduce(%101 init: %cst_33) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %103 = stablehlo.broadcast_in_dim %102, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_34 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %104 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %105 = stablehlo.divide %103, %104 : tensor<1x1xf32>
    %cst_35 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %106 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %107 = stablehlo.add %105, %106 : tensor<1x1xf32>
    %108 = stablehlo.rsqrt %107 : tensor<1x1xf32>
    %109 = stablehlo.broadcast_in_dim %108, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %110 = stablehlo.multiply %100, %109 : tensor<1x32xf32>
    %111 = stablehlo.slice %arg2 [1:2, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %112 = stablehlo.reshape %111 : (tensor<1x32xf32>) -> tensor<32xf32>
    %113 = stablehlo.broadcast_in_dim %112, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %114 = stablehlo.multiply %110, %113 : tensor<1x32xf32>
    %115 = stablehlo.dot_general %114, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32xf32>, tensor<32x128xf32>) -> tensor<1x128xf32>
    %116 = stablehlo.multiply %115, %115 : tensor<1x128xf32>
    %117 = stablehlo.multiply %116, %115 : tensor<1x128xf32>
    %cst_36 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %118 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %119 = stablehlo.multiply %118, %117 : tensor<1x128xf32>
    %120 = stablehlo.add %115, %119 : tensor<1x128xf32>
    %cst_37 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %121 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %122 = stablehlo.multiply %121, %120 : tensor<1x128xf32>
    %123 = stablehlo.tanh %122 : tensor<1x128xf32>
    %cst_38 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %124 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %125 = stablehlo.add %124, %123 : tensor<1x128xf32>
    %cst_39 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %126 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %127 = stablehlo.multiply %126, %125 : tensor<1x128xf32>
    %128 = stablehlo.multiply %115, %127 : tensor<1x128xf32>
    %129 = stablehlo.dot_general %128, %arg6, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128xf32>, tensor<128x32xf32>) -> tensor<1x32xf32>
    %130 = stablehlo.add %94, %129 : tensor<1x32xf32>
    %cst_40 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %131 = stablehlo.reduce(%130 init: %cst_40) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %132 = stablehlo.broadcast_in_dim %131, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_41 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %133 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %134 = stablehlo.divide %132, %133 : tensor<1x1xf32>
    %135 = stablehlo.broadcast_in_dim %134, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %136 = stablehlo.subtract %130, %135 : tensor<1x32xf32>
    %137 = stablehlo.multiply %136, %136 : tensor<1x32xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %138 = stablehlo.reduce(%137 init: %cst_42) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_43 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %140 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %141 = stablehlo.divide %139, %140 : tensor<1x1xf32>
    %cst_44 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %142 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %143 = stablehlo.add %141, %142 : tensor<1x1xf32>
    %144 = stablehlo.rsqrt %143 : tensor<1x1xf32>
    %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %146 = stablehlo.multiply %136, %145 : tensor<1x32xf32>
    %147 = stablehlo.slice %arg7 [0:1, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %148 = stablehlo.reshape %147 : (tensor<1x32xf32>) -> tensor<32xf32>
    %149 = stablehlo.broadcast_in_dim %148, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %150 = stablehlo.multiply %146, %149 : tensor<1x32xf32>
    %151 = stablehlo.dot_general %150, %arg8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32xf32>, tensor<32x96xf32>) -> tensor<1x96xf32>
    %152 = stablehlo.slice %151 [0:1, 0:32] : (tensor<1x96xf32>) -> tensor<1x32xf32>
    %153 = stablehlo.slice %151 [0:1, 32:64] : (tensor<1x96xf32>) -> tensor<1x32xf32>
    %154 = stablehlo.slice %151 [0:1, 64:96] : (tensor<1x96xf32>) -> tensor<1x32xf32>
    %155 = stablehlo.reshape %152 : (tensor<1x32xf32>) -> tensor<1x4x8xf32>
    %156 = stablehlo.transpose %155, dims = [1, 0, 2] : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
    %157 = stablehlo.reshape %153 : (tensor<1x32xf32>) -> tensor<1x4x8xf32>
    %158 = stablehlo.transpose %157, dims = [1, 0, 2] : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
    %159 = stablehlo.reshape %154 : (tensor<1x32xf32>) -> tensor<1x4x8xf32>
    %160 = stablehlo.transpose %159, dims = [1, 0, 2] : (tensor<1x4x8xf32>) -> tensor<4x1x8xf32>
    %161 = stablehlo.broadcast_in_dim %158, dims = [1, 2, 3] : (tensor<4x1x8xf32>) -> tensor<1x4x1x8xf32>
    %162 = stablehlo.broadcast_in_dim %160, dims = [1, 2, 3] : (tensor<4x1x8xf32>) -> tensor<1x4x1x8xf32>
    %163 = stablehlo.concatenate %161, %162, dim = 0 : (tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>) -> tensor<2x4x1x8xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [1, 2, 3, 4] : (tensor<2x4x1x8xf32>) -> tensor<1x2x4x1x8xf32>
    %c_45 = stablehlo.constant dense<0> : tensor<i32>
    %165 = stablehlo.compare LT, %arg13, %c_45, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %166 = stablehlo.convert %arg13 : tensor<i32>
    %c_46 = stablehlo.constant dense<96> : tensor<i32>
    %167 = stablehlo.add %166, %c_46 : tensor<i32>
    %168 = stablehlo.select %165, %167, %arg13 : tensor<i1>, tensor<i32>
    %c_47 = stablehlo.constant dense<1> : tensor<i32>
    %c_48 = stablehlo.constant dense<0> : tensor<i32>
    %c_49 = stablehlo.constant dense<0> : tensor<i32>
    %c_50 = stablehlo.constant dense<0> : tensor<i32>
    %169 = stablehlo.dynamic_update_slice %69, %164, %c_47, %c_48, %c_49, %168, %c_50 : (tensor<2x2x4x96x8xf32>, tensor<1x2x4x1x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x4x96x8xf32>
    %170 = stablehlo.slice %169 [1:2, 0:1, 0:4, 0:96, 0:8] : (tensor<2x2x4x96x8xf32>) -> tensor<1x1x4x96x8xf32>
    %171 = stablehlo.reshape %170 : (tensor<1x1x4x96x8xf32>) -> tensor<4x96x8xf32>
    %172 = stablehlo.slice %169 [1:2, 1:2, 0:4, 0:96, 0:8] : (tensor<2x2x4x96x8xf32>) -> tensor<1x1x4x96x8xf32>
    %173 = stablehlo.reshape %172 : (tensor<1x1x4x96x8xf32>) -> tensor<4x96x8xf32>
    %174 = stablehlo.transpose %171, dims = [0, 2, 1] : (tensor<4x96x8xf32>) -> tensor<4x8x96xf32>
    %175 = stablehlo.dot_general %156, %174, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x1x8xf32>, tensor<4x8x96xf32>) -> tensor<4x1x96xf32>
    %cst_51 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<4x1x96xf32>
    %177 = stablehlo.multiply %175, %176 : tensor<4x1x96xf32>
    %cst_52 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %178 = call @_where(%30, %177, %cst_52) : (tensor<1x96xi1>, tensor<4x1x96xf32>, tensor<f32>) -> tensor<4x1x96xf32>
    %cst_53 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %179 = stablehlo.reduce(%178 init: %cst_53) applies stablehlo.maximum across dimensions = [2] : (tensor<4x1x96xf32>, tensor<f32>) -> tensor<4x1xf32>
    %cst_54 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %180 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %181 = stablehlo.maximum %180, %179 : tensor<4x1xf32>
    %182 = stablehlo.broadcast_in_dim %181, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %183 = stablehlo.broadcast_in_dim %182, dims = [0, 1, 2] : (tensor<4x1x1xf32>) -> tensor<4x1x96xf32>
    %184 = stablehlo.subtract %178, %183 : tensor<4x1x96xf32>
    %185 = stablehlo.exponential %184 : tensor<4x1x96xf32>
    %cst_55 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %186 = stablehlo.reduce(%185 init: %cst_55) applies stablehlo.add across dimensions = [2] : (tensor<4x1x96xf32>, tensor<f32>) -> tensor<4x1xf32>
    %187 = stablehlo.broadcast_in_dim %186, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %188 = stablehlo.broadcast_in_dim %187, dims = [0, 1, 2] : (tensor<4x1x1xf32>) -> tensor<4x1x96xf32>
    %189 = stablehlo.divide %185, %188 : tensor<4x1x96xf32>
    %190 = stablehlo.dot_general %189, %173, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x1x96xf32>, tensor<4x96x8xf32>) -> tensor<4x1x8xf32>
    %191 = stablehlo.transpose %190, dims = [1, 0, 2] : (tensor<4x1x8xf32>) -> tensor<1x4x8xf32>
    %192 = stablehlo.reshape %191 : (tensor<1x4x8xf32>) -> tensor<1x32xf32>
    %193 = stablehlo.dot_general %192, %arg9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32xf32>, tensor<32x32xf32>) -> tensor<1x32xf32>
    %194 = stablehlo.add %130, %193 : tensor<1x32xf32>
    %cst_56 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %195 = stablehlo.reduce(%194 init: %cst_56) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_57 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %197 = stablehlo.broadcast_in_dim %cst_57, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %198 = stablehlo.divide %196, %197 : tensor<1x1xf32>
    %199 = stablehlo.broadcast_in_dim %198, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %200 = stablehlo.subtract %194, %199 : tensor<1x32xf32>
    %201 = stablehlo.multiply %200, %200 : tensor<1x32xf32>
    %cst_58 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %202 = stablehlo.reduce(%201 init: %cst_58) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %203 = stablehlo.broadcast_in_dim %202, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_59 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %204 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %205 = stablehlo.divide %203, %204 : tensor<1x1xf32>
    %cst_60 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %206 = stablehlo.broadcast_in_dim %cst_60, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %207 = stablehlo.add %205, %206 : tensor<1x1xf32>
    %208 = stablehlo.rsqrt %207 : tensor<1x1xf32>
    %209 = stablehlo.broadcast_in_dim %208, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %210 = stablehlo.multiply %200, %209 : tensor<1x32xf32>
    %211 = stablehlo.slice %arg7 [1:2, 0:32] : (tensor<2x32xf32>) -> tensor<1x32xf32>
    %212 = stablehlo.reshape %211 : (tensor<1x32xf32>) -> tensor<32xf32>
    %213 = stablehlo.broadcast_in_dim %212, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %214 = stablehlo.multiply %210, %213 : tensor<1x32xf32>
    %215 = stablehlo.dot_general %214, %arg10, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32xf32>, tensor<32x128xf32>) -> tensor<1x128xf32>
    %216 = stablehlo.multiply %215, %215 : tensor<1x128xf32>
    %217 = stablehlo.multiply %216, %215 : tensor<1x128xf32>
    %cst_61 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %218 = stablehlo.broadcast_in_dim %cst_61, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %219 = stablehlo.multiply %218, %217 : tensor<1x128xf32>
    %220 = stablehlo.add %215, %219 : tensor<1x128xf32>
    %cst_62 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %221 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %222 = stablehlo.multiply %221, %220 : tensor<1x128xf32>
    %223 = stablehlo.tanh %222 : tensor<1x128xf32>
    %cst_63 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %224 = stablehlo.broadcast_in_dim %cst_63, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %225 = stablehlo.add %224, %223 : tensor<1x128xf32>
    %cst_64 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %226 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %227 = stablehlo.multiply %226, %225 : tensor<1x128xf32>
    %228 = stablehlo.multiply %215, %227 : tensor<1x128xf32>
    %229 = stablehlo.dot_general %228, %arg11, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128xf32>, tensor<128x32xf32>) -> tensor<1x32xf32>
    %230 = stablehlo.add %194, %229 : tensor<1x32xf32>
    %cst_65 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %231 = stablehlo.reduce(%230 init: %cst_65) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %232 = stablehlo.broadcast_in_dim %231, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_66 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %233 = stablehlo.broadcast_in_dim %cst_66, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %234 = stablehlo.divide %232, %233 : tensor<1x1xf32>
    %235 = stablehlo.broadcast_in_dim %234, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %236 = stablehlo.subtract %230, %235 : tensor<1x32xf32>
    %237 = stablehlo.multiply %236, %236 : tensor<1x32xf32>
    %cst_67 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %238 = stablehlo.reduce(%237 init: %cst_67) applies stablehlo.add across dimensions = [1] : (tensor<1x32xf32>, tensor<f32>) -> tensor<1xf32>
    %239 = stablehlo.broadcast_in_dim %238, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %cst_68 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %240 = stablehlo.broadcast_in_dim %cst_68, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %241 = stablehlo.divide %239, %240 : tensor<1x1xf32>
    %cst_69 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %242 = stablehlo.broadcast_in_dim %cst_69, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %243 = stablehlo.add %241, %242 : tensor<1x1xf32>
    %244 = stablehlo.rsqrt %243 : tensor<1x1xf32>
    %245 = stablehlo.broadcast_in_dim %244, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x32xf32>
    %246 = stablehlo.multiply %236, %245 : tensor<1x32xf32>
    %247 = stablehlo.dot_general %246, %arg12, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32xf32>, tensor<32x64xf32>) -> tensor<1x64xf32>
    %248 = stablehlo.reshape %247 : (tensor<1x64xf32>) -> tensor<64xf32>
    %249 = call @argmax(%248) : (tensor<64xf32>) -> tensor<i32>
    %c_70 = stablehlo.constant dense<1> : tensor<i32>
    %250 = stablehlo.add %arg13, %c_70 : tensor<i32>
    %c_71 = stablehlo.constant dense<8> : tensor<i32>
    %251 = stablehlo.compare LT, %250, %c_71, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_72 = stablehlo.constant dense<1> : tensor<i32>
    %252 = stablehlo.add %arg13, %c_72 : tensor<i32>
    %c_73 = stablehlo.constant dense<0> : tensor<i32>
    %253 = stablehlo.compare LT, %252, %c_73, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %254 = stablehlo.convert %252 : tensor<i32>
    %c_74 = stablehlo.constant dense<97> : tensor<i32>
    %255 = stablehlo.add %254, %c_74 : tensor<i32>
    %256 = stablehlo.select %253, %255, %252 : tensor<i1>, tensor<i32>
    %257 = stablehlo.dynamic_slice %arg14, %256, sizes = [1] : (tensor<97xi32>, tensor<i32>) -> tensor<1xi32>
    %258 = stablehlo.reshape %257 : (tensor<1xi32>) -> tensor<i32>
    %259 = call @_where_0(%251, %258, %249) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %c_75 = stablehlo.constant dense<1> : tensor<i32>
    %260 = stablehlo.add %arg13, %c_75 : tensor<i32>
    %c_76 = stablehlo.constant dense<0> : tensor<i32>
    %261 = stablehlo.compare LT, %260, %c_76, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_77 = stablehlo.constant dense<97> : tensor<i32>
    %262 = stablehlo.add %260, %c_77 : tensor<i32>
    %263 = stablehlo.select %261, %262, %260 : tensor<i1>, tensor<i32>
    %264 = stablehlo.convert %263 : tensor<i32>
    %265 = stablehlo.broadcast_in_dim %264, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %266 = "stablehlo.scatter"(%arg14, %265, %259) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg17: tensor<i32>, %arg18: tensor<i32>):
      stablehlo.return %arg18 : tensor<i32>
    }) : (tensor<97xi32>, tensor<1xi32>, tensor<i32>) -> tensor<97xi32>
    return %0, %266, %169, %248 : tensor<i32>, tensor<97xi32>, tensor<2x2x4x96x8xf32>, tensor<64xf32>
  }
  func.func private @_where(%arg0: tensor<1x96xi1>, %arg1: tensor<4x1x96xf32>, %arg2: tensor<f32>) -> tensor<4x1x96xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<1x96xi1>) -> tensor<4x1x96xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x1x96xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x1x96xi1>, tensor<4x1x96xf32>
    return %3 : tensor<4x1x96xf32>
  }
  func.func private @argmax(%arg0: tensor<64xf32>) -> tensor<i32> {
    %0 = stablehlo.iota dim = 0 : tensor<64xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<64xf32>, tensor<64xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<i32>
  }
  func.func private @_where_0(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
}
