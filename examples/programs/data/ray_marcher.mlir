module @jit_ray_marcher attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x3xf32>, %arg1: tensor<8xf32>, %arg2: tensor<3xf32>) -> (tensor<64x96xf32> {jax.result_info = "result['picture']"}) {
    %cst = stablehlo.constant dense<8.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<-8.000000e-01> : tensor<f32>
    %0 = call @_linspace(%cst, %cst_0) : (tensor<f32>, tensor<f32>) -> tensor<64xf32>
    %cst_1 = stablehlo.constant dense<-1.200000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.200000e+00> : tensor<f32>
    %1 = call @_linspace_0(%cst_1, %cst_2) : (tensor<f32>, tensor<f32>) -> tensor<96xf32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<64xf32>) -> tensor<64x96xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %cst_3 = stablehlo.constant dense<1.600000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %6 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %7 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %8 = stablehlo.concatenate %5, %6, %7, dim = 2 : (tensor<64x96x1xf32>, tensor<64x96x1xf32>, tensor<64x96x1xf32>) -> tensor<64x96x3xf32>
    %9 = call @norm(%8) : (tensor<64x96x3xf32>) -> tensor<64x96x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<64x96x1xf32>) -> tensor<64x96x3xf32>
    %11 = stablehlo.divide %8, %10 : tensor<64x96x3xf32>
    %12 = call @norm_1(%arg2) : (tensor<3xf32>) -> tensor<1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<1xf32>) -> tensor<3xf32>
    %14 = stablehlo.divide %arg2, %13 : tensor<3xf32>
    %cst_4 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %17 = stablehlo.broadcast_in_dim %15, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %18 = stablehlo.broadcast_in_dim %16, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %19:7 = stablehlo.while(%iterArg = %11, %iterArg_38 = %arg0, %iterArg_39 = %arg1, %iterArg_40 = %c_6, %iterArg_41 = %c, %iterArg_42 = %17, %iterArg_43 = %18) : tensor<64x96x3xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<i32>, tensor<i32>, tensor<64x96xf32>, tensor<64x96xf32>
    cond {
      %c_44 = stablehlo.constant dense<48> : tensor<i32>
      %133 = stablehlo.compare LT, %iterArg_40, %c_44, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %133 : tensor<i1>
    } do {
      %133:3 = func.call @closed_call(%iterArg, %iterArg_38, %iterArg_39, %iterArg_41, %iterArg_42, %iterArg_43) : (tensor<64x96x3xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<i32>, tensor<64x96xf32>, tensor<64x96xf32>) -> (tensor<i32>, tensor<64x96xf32>, tensor<64x96xf32>)
      %c_44 = stablehlo.constant dense<1> : tensor<i32>
      %134 = stablehlo.add %iterArg_40, %c_44 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_38, %iterArg_39, %134, %133#0, %133#1, %133#2 : tensor<64x96x3xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<i32>, tensor<i32>, tensor<64x96xf32>, tensor<64x96xf32>
    }
    %20 = stablehlo.broadcast_in_dim %19#5, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<64x96x1xf32>) -> tensor<64x96x3xf32>
    %22 = stablehlo.multiply %21, %11 : tensor<64x96x3xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 3] : (tensor<64x96x3xf32>) -> tensor<64x96x1x3xf32>
    %24 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<8x3xf32>) -> tensor<1x8x3xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [1, 2, 3] : (tensor<1x8x3xf32>) -> tensor<1x1x8x3xf32>
    %26 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2, 3] : (tensor<64x96x1x3xf32>) -> tensor<64x96x8x3xf32>
    %27 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3] : (tensor<1x1x8x3xf32>) -> tensor<64x96x8x3xf32>
    %28 = stablehlo.subtract %26, %27 : tensor<64x96x8x3xf32>
    %29 = stablehlo.multiply %28, %28 : tensor<64x96x8x3xf32>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<64x96x8x3xf32>
    %31 = stablehlo.multiply %30, %28 : tensor<64x96x8x3xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %32 = stablehlo.reduce(%29 init: %cst_8) applies stablehlo.add across dimensions = [3] : (tensor<64x96x8x3xf32>, tensor<f32>) -> tensor<64x96x8xf32>
    %33 = stablehlo.sqrt %32 : tensor<64x96x8xf32>
    %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<64x96x8xf32>
    %35 = stablehlo.divide %34, %33 : tensor<64x96x8xf32>
    %36 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [1, 2] : (tensor<1x8xf32>) -> tensor<1x1x8xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<64x96x8xf32>
    %39 = stablehlo.subtract %33, %38 : tensor<64x96x8xf32>
    %40 = stablehlo.slice %22 [0:64, 0:96, 1:2] : (tensor<64x96x3xf32>) -> tensor<64x96x1xf32>
    %41 = stablehlo.reshape %40 : (tensor<64x96x1xf32>) -> tensor<64x96xf32>
    %cst_10 = stablehlo.constant dense<-1.200000e+00> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %43 = stablehlo.subtract %41, %42 : tensor<64x96xf32>
    %44 = call @append_2(%39, %43) : (tensor<64x96x8xf32>, tensor<64x96xf32>) -> tensor<64x96x9xf32>
    %cst_11 = stablehlo.constant dense<-8.000000e+00> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<64x96x9xf32>
    %46 = stablehlo.multiply %45, %44 : tensor<64x96x9xf32>
    %cst_12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %47 = stablehlo.reduce(%46 init: %cst_12) applies stablehlo.maximum across dimensions = [2] : (tensor<64x96x9xf32>, tensor<f32>) -> tensor<64x96xf32>
    %48 = stablehlo.reshape %47 : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [0, 1, 2] : (tensor<64x96x1xf32>) -> tensor<64x96x9xf32>
    %50 = stablehlo.compare EQ, %46, %49, FLOAT : (tensor<64x96x9xf32>, tensor<64x96x9xf32>) -> tensor<64x96x9xi1>
    %51 = stablehlo.convert %50 : (tensor<64x96x9xi1>) -> tensor<64x96x9xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.reduce(%51 init: %cst_13) applies stablehlo.add across dimensions = [2] : (tensor<64x96x9xf32>, tensor<f32>) -> tensor<64x96xf32>
    %cst_14 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %54 = stablehlo.maximum %53, %47 : tensor<64x96xf32>
    %55 = stablehlo.compare EQ, %47, %54, FLOAT : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xi1>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %cst_16 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %58 = stablehlo.broadcast_in_dim %56, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %59 = stablehlo.broadcast_in_dim %57, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %60 = stablehlo.select %55, %59, %58 : tensor<64x96xi1>, tensor<64x96xf32>
    %cst_17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %62 = stablehlo.compare EQ, %61, %54, FLOAT : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xi1>
    %cst_18 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %cst_19 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %65 = stablehlo.broadcast_in_dim %63, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %66 = stablehlo.broadcast_in_dim %64, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %67 = stablehlo.select %62, %66, %65 : tensor<64x96xi1>, tensor<64x96xf32>
    %68 = stablehlo.divide %60, %67 : tensor<64x96xf32>
    %69 = stablehlo.is_finite %54 : (tensor<64x96xf32>) -> tensor<64x96xi1>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %72 = stablehlo.select %69, %54, %71 : tensor<64x96xi1>, tensor<64x96xf32>
    %73 = stablehlo.broadcast_in_dim %72, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %74 = stablehlo.broadcast_in_dim %73, dims = [0, 1, 2] : (tensor<64x96x1xf32>) -> tensor<64x96x9xf32>
    %75 = stablehlo.subtract %46, %74 : tensor<64x96x9xf32>
    %76 = stablehlo.exponential %75 : tensor<64x96x9xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %77 = stablehlo.reduce(%76 init: %cst_21) applies stablehlo.add across dimensions = [2] : (tensor<64x96x9xf32>, tensor<f32>) -> tensor<64x96xf32>
    %78 = stablehlo.sign %77 : tensor<64x96xf32>
    %79 = stablehlo.abs %77 : tensor<64x96xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %81 = stablehlo.compare GE, %77, %80, FLOAT : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xi1>
    %82 = stablehlo.log %79 : tensor<64x96xf32>
    %83 = stablehlo.add %82, %72 : tensor<64x96xf32>
    %84 = stablehlo.negate %83 : tensor<64x96xf32>
    %cst_23 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %85 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %86 = stablehlo.divide %84, %85 : tensor<64x96xf32>
    %cst_24 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_25 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %87 = stablehlo.divide %cst_24, %cst_25 : tensor<f32>
    %88 = stablehlo.negate %87 : tensor<f32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %90 = stablehlo.divide %89, %79 : tensor<64x96xf32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %93 = stablehlo.select %81, %92, %90 : tensor<64x96xi1>, tensor<64x96xf32>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %94 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %96 = stablehlo.select %81, %90, %95 : tensor<64x96xi1>, tensor<64x96xf32>
    %97 = stablehlo.negate %93 : tensor<64x96xf32>
    %98 = stablehlo.add %96, %97 : tensor<64x96xf32>
    %99 = stablehlo.broadcast_in_dim %98, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x9xf32>
    %100 = stablehlo.multiply %99, %76 : tensor<64x96x9xf32>
    %cst_28 = stablehlo.constant dense<-8.000000e+00> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<64x96x9xf32>
    %102 = stablehlo.multiply %101, %100 : tensor<64x96x9xf32>
    %103:2 = call @append_3(%102) : (tensor<64x96x9xf32>) -> (tensor<64x96x8xf32>, tensor<64x96xf32>)
    %104 = stablehlo.broadcast_in_dim %103#1, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %105 = stablehlo.pad %104, %cst_29, low = [0, 0, 1], high = [0, 0, 1], interior = [0, 0, 0] : (tensor<64x96x1xf32>, tensor<f32>) -> tensor<64x96x3xf32>
    %106 = stablehlo.multiply %103#0, %35 : tensor<64x96x8xf32>
    %107 = stablehlo.broadcast_in_dim %106, dims = [0, 1, 2] : (tensor<64x96x8xf32>) -> tensor<64x96x8x3xf32>
    %108 = stablehlo.multiply %107, %31 : tensor<64x96x8x3xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %109 = stablehlo.reduce(%108 init: %cst_30) applies stablehlo.add across dimensions = [2] : (tensor<64x96x8x3xf32>, tensor<f32>) -> tensor<64x96x3xf32>
    %110 = stablehlo.reshape %109 : (tensor<64x96x3xf32>) -> tensor<64x96x1x3xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %111 = stablehlo.reduce(%110 init: %cst_31) applies stablehlo.add across dimensions = [2] : (tensor<64x96x1x3xf32>, tensor<f32>) -> tensor<64x96x3xf32>
    %112 = stablehlo.add %105, %111 : tensor<64x96x3xf32>
    %113 = call @norm_4(%112) : (tensor<64x96x3xf32>) -> tensor<64x96x1xf32>
    %114 = stablehlo.broadcast_in_dim %113, dims = [0, 1, 2] : (tensor<64x96x1xf32>) -> tensor<64x96x3xf32>
    %115 = stablehlo.divide %112, %114 : tensor<64x96x3xf32>
    %116 = stablehlo.dot_general %115, %14, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x96x3xf32>, tensor<3xf32>) -> tensor<64x96xf32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %117 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %118 = stablehlo.maximum %116, %117 : tensor<64x96xf32>
    %cst_33 = stablehlo.constant dense<8.000000e-01> : tensor<f32>
    %119 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %120 = stablehlo.multiply %119, %118 : tensor<64x96xf32>
    %cst_34 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %121 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %122 = stablehlo.add %121, %120 : tensor<64x96xf32>
    %cst_35 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %123 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %124 = stablehlo.maximum %19#6, %123 : tensor<64x96xf32>
    %cst_36 = stablehlo.constant dense<-2.000000e+01> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %126 = stablehlo.multiply %125, %124 : tensor<64x96xf32>
    %127 = stablehlo.exponential %126 : tensor<64x96xf32>
    %128 = stablehlo.multiply %122, %127 : tensor<64x96xf32>
    %cst_37 = stablehlo.constant dense<-5.000000e-02> : tensor<f32>
    %129 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %130 = stablehlo.multiply %129, %19#5 : tensor<64x96xf32>
    %131 = stablehlo.exponential %130 : tensor<64x96xf32>
    %132 = stablehlo.multiply %128, %131 : tensor<64x96xf32>
    return %132 : tensor<64x96xf32>
  }
  func.func private @_linspace(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<64xf32> {
    %0 = stablehlo.convert %arg0 : tensor<f32>
    %1 = stablehlo.convert %arg1 : tensor<f32>
    %2 = stablehlo.subtract %1, %0 : tensor<f32>
    %cst = stablehlo.constant dense<6.300000e+01> : tensor<f32>
    %3 = stablehlo.divide %2, %cst : tensor<f32>
    %4 = stablehlo.iota dim = 0 : tensor<63xf32>
    %cst_0 = stablehlo.constant dense<6.300000e+01> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<63xf32>
    %6 = stablehlo.divide %4, %5 : tensor<63xf32>
    %7 = stablehlo.reshape %0 : (tensor<f32>) -> tensor<1xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<63xf32>
    %9 = stablehlo.subtract %8, %6 : tensor<63xf32>
    %10 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<1xf32>) -> tensor<63xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<63xf32>
    %12 = stablehlo.reshape %1 : (tensor<f32>) -> tensor<1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<1xf32>) -> tensor<63xf32>
    %14 = stablehlo.multiply %13, %6 : tensor<63xf32>
    %15 = stablehlo.add %11, %14 : tensor<63xf32>
    %16 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %17 = stablehlo.concatenate %15, %16, dim = 0 : (tensor<63xf32>, tensor<1xf32>) -> tensor<64xf32>
    return %17 : tensor<64xf32>
  }
  func.func private @_linspace_0(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<96xf32> {
    %0 = stablehlo.convert %arg0 : tensor<f32>
    %1 = stablehlo.convert %arg1 : tensor<f32>
    %2 = stablehlo.subtract %1, %0 : tensor<f32>
    %cst = stablehlo.constant dense<9.500000e+01> : tensor<f32>
    %3 = stablehlo.divide %2, %cst : tensor<f32>
    %4 = stablehlo.iota dim = 0 : tensor<95xf32>
    %cst_0 = stablehlo.constant dense<9.500000e+01> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<95xf32>
    %6 = stablehlo.divide %4, %5 : tensor<95xf32>
    %7 = stablehlo.reshape %0 : (tensor<f32>) -> tensor<1xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<95xf32>
    %9 = stablehlo.subtract %8, %6 : tensor<95xf32>
    %10 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<1xf32>) -> tensor<95xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<95xf32>
    %12 = stablehlo.reshape %1 : (tensor<f32>) -> tensor<1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<1xf32>) -> tensor<95xf32>
    %14 = stablehlo.multiply %13, %6 : tensor<95xf32>
    %15 = stablehlo.add %11, %14 : tensor<95xf32>
    %16 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %17 = stablehlo.concatenate %15, %16, dim = 0 : (tensor<95xf32>, tensor<1xf32>) -> tensor<96xf32>
    return %17 : tensor<96xf32>
  }
  func.func private @norm(%arg0: tensor<64x96x3xf32>) -> tensor<64x96x1xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<64x96x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<64x96x3xf32>, tensor<f32>) -> tensor<64x96xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %3 = stablehlo.sqrt %2 : tensor<64x96x1xf32>
    return %3 : tensor<64x96x1xf32>
  }
  func.func private @norm_1(%arg0: tensor<3xf32>) -> tensor<1xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %3 = stablehlo.sqrt %2 : tensor<1xf32>
    return %3 : tensor<1xf32>
  }
  func.func private @closed_call(%arg0: tensor<64x96x3xf32>, %arg1: tensor<8x3xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>, %arg4: tensor<64x96xf32>, %arg5: tensor<64x96xf32>) -> (tensor<i32>, tensor<64x96xf32>, tensor<64x96xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg3, %c : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %arg4, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<64x96x1xf32>) -> tensor<64x96x3xf32>
    %3 = stablehlo.multiply %2, %arg0 : tensor<64x96x3xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 3] : (tensor<64x96x3xf32>) -> tensor<64x96x1x3xf32>
    %5 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x3xf32>) -> tensor<1x8x3xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [1, 2, 3] : (tensor<1x8x3xf32>) -> tensor<1x1x8x3xf32>
    %7 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<64x96x1x3xf32>) -> tensor<64x96x8x3xf32>
    %8 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2, 3] : (tensor<1x1x8x3xf32>) -> tensor<64x96x8x3xf32>
    %9 = stablehlo.subtract %7, %8 : tensor<64x96x8x3xf32>
    %10 = stablehlo.multiply %9, %9 : tensor<64x96x8x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%10 init: %cst) applies stablehlo.add across dimensions = [3] : (tensor<64x96x8x3xf32>, tensor<f32>) -> tensor<64x96x8xf32>
    %12 = stablehlo.sqrt %11 : tensor<64x96x8xf32>
    %13 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [1, 2] : (tensor<1x8xf32>) -> tensor<1x1x8xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<64x96x8xf32>
    %16 = stablehlo.subtract %12, %15 : tensor<64x96x8xf32>
    %17 = stablehlo.slice %3 [0:64, 0:96, 1:2] : (tensor<64x96x3xf32>) -> tensor<64x96x1xf32>
    %18 = stablehlo.reshape %17 : (tensor<64x96x1xf32>) -> tensor<64x96xf32>
    %cst_0 = stablehlo.constant dense<-1.200000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %20 = stablehlo.subtract %18, %19 : tensor<64x96xf32>
    %21 = call @append(%16, %20) : (tensor<64x96x8xf32>, tensor<64x96xf32>) -> tensor<64x96x9xf32>
    %cst_1 = stablehlo.constant dense<-8.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<64x96x9xf32>
    %23 = stablehlo.multiply %22, %21 : tensor<64x96x9xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %24 = stablehlo.reduce(%23 init: %cst_2) applies stablehlo.maximum across dimensions = [2] : (tensor<64x96x9xf32>, tensor<f32>) -> tensor<64x96xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %26 = stablehlo.maximum %25, %24 : tensor<64x96xf32>
    %27 = stablehlo.is_finite %26 : (tensor<64x96xf32>) -> tensor<64x96xi1>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [1] : (tensor<96xf32>) -> tensor<64x96xf32>
    %30 = stablehlo.select %27, %26, %29 : tensor<64x96xi1>, tensor<64x96xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2] : (tensor<64x96x1xf32>) -> tensor<64x96x9xf32>
    %33 = stablehlo.subtract %23, %32 : tensor<64x96x9xf32>
    %34 = stablehlo.exponential %33 : tensor<64x96x9xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.reduce(%34 init: %cst_5) applies stablehlo.add across dimensions = [2] : (tensor<64x96x9xf32>, tensor<f32>) -> tensor<64x96xf32>
    %36 = stablehlo.sign %35 : tensor<64x96xf32>
    %37 = stablehlo.abs %35 : tensor<64x96xf32>
    %38 = stablehlo.log %37 : tensor<64x96xf32>
    %39 = stablehlo.add %38, %30 : tensor<64x96xf32>
    %40 = stablehlo.negate %39 : tensor<64x96xf32>
    %cst_6 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %42 = stablehlo.divide %40, %41 : tensor<64x96xf32>
    %cst_7 = stablehlo.constant dense<8.000000e-01> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %44 = stablehlo.multiply %43, %42 : tensor<64x96xf32>
    %45 = stablehlo.add %arg4, %44 : tensor<64x96xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<64x96xf32>
    %47 = stablehlo.add %arg4, %46 : tensor<64x96xf32>
    %48 = stablehlo.divide %42, %47 : tensor<64x96xf32>
    %49 = stablehlo.minimum %arg5, %48 : tensor<64x96xf32>
    return %0, %45, %49 : tensor<i32>, tensor<64x96xf32>, tensor<64x96xf32>
  }
  func.func private @append(%arg0: tensor<64x96x8xf32>, %arg1: tensor<64x96xf32>) -> tensor<64x96x9xf32> {
    %0 = stablehlo.reshape %arg1 : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %1 = stablehlo.concatenate %arg0, %0, dim = 2 : (tensor<64x96x8xf32>, tensor<64x96x1xf32>) -> tensor<64x96x9xf32>
    return %1 : tensor<64x96x9xf32>
  }
  func.func private @append_2(%arg0: tensor<64x96x8xf32>, %arg1: tensor<64x96xf32>) -> tensor<64x96x9xf32> {
    %0 = stablehlo.reshape %arg1 : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %1 = stablehlo.concatenate %arg0, %0, dim = 2 : (tensor<64x96x8xf32>, tensor<64x96x1xf32>) -> tensor<64x96x9xf32>
    return %1 : tensor<64x96x9xf32>
  }
  func.func private @append_3(%arg0: tensor<64x96x9xf32>) -> (tensor<64x96x8xf32>, tensor<64x96xf32>) {
    %0 = stablehlo.slice %arg0 [0:64, 0:96, 0:8] : (tensor<64x96x9xf32>) -> tensor<64x96x8xf32>
    %1 = stablehlo.slice %arg0 [0:64, 0:96, 8:9] : (tensor<64x96x9xf32>) -> tensor<64x96x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<64x96x1xf32>) -> tensor<64x96xf32>
    return %0, %2 : tensor<64x96x8xf32>, tensor<64x96xf32>
  }
  func.func private @norm_4(%arg0: tensor<64x96x3xf32>) -> tensor<64x96x1xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<64x96x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<64x96x3xf32>, tensor<f32>) -> tensor<64x96xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<64x96xf32>) -> tensor<64x96x1xf32>
    %3 = stablehlo.sqrt %2 : tensor<64x96x1xf32>
    return %3 : tensor<64x96x1xf32>
  }
}
