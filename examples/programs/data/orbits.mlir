module @jit_orbits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x2xf64>, %arg1: tensor<f64>) -> (tensor<64xi64> {jax.result_info = "result['refused steps']"}, tensor<64x2xf64> {jax.result_info = "result['states']"}, tensor<64xi64> {jax.result_info = "result['steps']"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<64xf64>
    %cst_0 = stablehlo.constant dense<1.000000e-02> : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<64xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<64xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %3 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<64xi64>
    %4:6 = stablehlo.while(%iterArg = %arg1, %iterArg_2 = %arg0, %iterArg_3 = %0, %iterArg_4 = %1, %iterArg_5 = %2, %iterArg_6 = %3) : tensor<f64>, tensor<64x2xf64>, tensor<64xf64>, tensor<64xf64>, tensor<64xi64>, tensor<64xi64>
    cond {
      %cst_7 = stablehlo.constant dense<1.000000e+01> : tensor<f64>
      %5 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %6 = stablehlo.compare LT, %iterArg_3, %5, FLOAT : (tensor<64xf64>, tensor<64xf64>) -> tensor<64xi1>
      %c_8 = stablehlo.constant dense<false> : tensor<i1>
      %7 = stablehlo.reduce(%6 init: %c_8) applies stablehlo.or across dimensions = [0] : (tensor<64xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      %cst_7 = stablehlo.constant dense<1.000000e+01> : tensor<f64>
      %5 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %6 = stablehlo.subtract %5, %iterArg_3 : tensor<64xf64>
      %7 = stablehlo.minimum %iterArg_4, %6 : tensor<64xf64>
      %8 = stablehlo.slice %iterArg_2 [0:64, 0:1] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %9 = stablehlo.reshape %8 : (tensor<64x1xf64>) -> tensor<64xf64>
      %10 = stablehlo.slice %iterArg_2 [0:64, 1:2] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %11 = stablehlo.reshape %10 : (tensor<64x1xf64>) -> tensor<64xf64>
      %12 = stablehlo.sine %9 : tensor<64xf64>
      %cst_8 = stablehlo.constant dense<-9.810000e+00> : tensor<f64>
      %13 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %14 = stablehlo.multiply %13, %12 : tensor<64xf64>
      %cst_9 = stablehlo.constant dense<1.000000e-01> : tensor<f64>
      %15 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %16 = stablehlo.multiply %15, %11 : tensor<64xf64>
      %17 = stablehlo.subtract %14, %16 : tensor<64xf64>
      %18 = stablehlo.broadcast_in_dim %11, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %19 = stablehlo.broadcast_in_dim %17, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %20 = stablehlo.concatenate %18, %19, dim = 0 : (tensor<1x64xf64>, tensor<1x64xf64>) -> tensor<2x64xf64>
      %cst_10 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
      %21 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %22 = stablehlo.divide %7, %21 : tensor<64xf64>
      %23 = stablehlo.convert %22 : tensor<64xf64>
      %24 = stablehlo.transpose %20, dims = [1, 0] : (tensor<2x64xf64>) -> tensor<64x2xf64>
      %25 = stablehlo.broadcast_in_dim %23, dims = [0] : (tensor<64xf64>) -> tensor<64x1xf64>
      %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1] : (tensor<64x1xf64>) -> tensor<64x2xf64>
      %27 = stablehlo.multiply %26, %24 : tensor<64x2xf64>
      %28 = stablehlo.add %iterArg_2, %27 : tensor<64x2xf64>
      %29 = stablehlo.slice %28 [0:64, 0:1] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %30 = stablehlo.reshape %29 : (tensor<64x1xf64>) -> tensor<64xf64>
      %31 = stablehlo.slice %28 [0:64, 1:2] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %32 = stablehlo.reshape %31 : (tensor<64x1xf64>) -> tensor<64xf64>
      %33 = stablehlo.sine %30 : tensor<64xf64>
      %cst_11 = stablehlo.constant dense<-9.810000e+00> : tensor<f64>
      %34 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %35 = stablehlo.multiply %34, %33 : tensor<64xf64>
      %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f64>
      %36 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %37 = stablehlo.multiply %36, %32 : tensor<64xf64>
      %38 = stablehlo.subtract %35, %37 : tensor<64xf64>
      %39 = stablehlo.broadcast_in_dim %32, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %40 = stablehlo.broadcast_in_dim %38, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %41 = stablehlo.concatenate %39, %40, dim = 0 : (tensor<1x64xf64>, tensor<1x64xf64>) -> tensor<2x64xf64>
      %cst_13 = stablehlo.constant dense<3.000000e+00> : tensor<f64>
      %42 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %43 = stablehlo.multiply %7, %42 : tensor<64xf64>
      %cst_14 = stablehlo.constant dense<4.000000e+00> : tensor<f64>
      %44 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %45 = stablehlo.divide %43, %44 : tensor<64xf64>
      %46 = stablehlo.convert %45 : tensor<64xf64>
      %47 = stablehlo.transpose %41, dims = [1, 0] : (tensor<2x64xf64>) -> tensor<64x2xf64>
      %48 = stablehlo.broadcast_in_dim %46, dims = [0] : (tensor<64xf64>) -> tensor<64x1xf64>
      %49 = stablehlo.broadcast_in_dim %48, dims = [0, 1] : (tensor<64x1xf64>) -> tensor<64x2xf64>
      %50 = stablehlo.multiply %49, %47 : tensor<64x2xf64>
      %51 = stablehlo.add %iterArg_2, %50 : tensor<64x2xf64>
      %52 = stablehlo.slice %51 [0:64, 0:1] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %53 = stablehlo.reshape %52 : (tensor<64x1xf64>) -> tensor<64xf64>
      %54 = stablehlo.slice %51 [0:64, 1:2] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %55 = stablehlo.reshape %54 : (tensor<64x1xf64>) -> tensor<64xf64>
      %56 = stablehlo.sine %53 : tensor<64xf64>
      %cst_15 = stablehlo.constant dense<-9.810000e+00> : tensor<f64>
      %57 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %58 = stablehlo.multiply %57, %56 : tensor<64xf64>
      %cst_16 = stablehlo.constant dense<1.000000e-01> : tensor<f64>
      %59 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %60 = stablehlo.multiply %59, %55 : tensor<64xf64>
      %61 = stablehlo.subtract %58, %60 : tensor<64xf64>
      %62 = stablehlo.broadcast_in_dim %55, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %63 = stablehlo.broadcast_in_dim %61, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %64 = stablehlo.concatenate %62, %63, dim = 0 : (tensor<1x64xf64>, tensor<1x64xf64>) -> tensor<2x64xf64>
      %cst_17 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
      %65 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %66 = stablehlo.multiply %65, %20 : tensor<2x64xf64>
      %cst_18 = stablehlo.constant dense<3.000000e+00> : tensor<f64>
      %67 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %68 = stablehlo.multiply %67, %41 : tensor<2x64xf64>
      %69 = stablehlo.add %66, %68 : tensor<2x64xf64>
      %cst_19 = stablehlo.constant dense<4.000000e+00> : tensor<f64>
      %70 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %71 = stablehlo.multiply %70, %64 : tensor<2x64xf64>
      %72 = stablehlo.add %69, %71 : tensor<2x64xf64>
      %73 = stablehlo.convert %7 : tensor<64xf64>
      %74 = stablehlo.transpose %72, dims = [1, 0] : (tensor<2x64xf64>) -> tensor<64x2xf64>
      %75 = stablehlo.broadcast_in_dim %73, dims = [0] : (tensor<64xf64>) -> tensor<64x1xf64>
      %76 = stablehlo.broadcast_in_dim %75, dims = [0, 1] : (tensor<64x1xf64>) -> tensor<64x2xf64>
      %77 = stablehlo.multiply %76, %74 : tensor<64x2xf64>
      %cst_20 = stablehlo.constant dense<9.000000e+00> : tensor<f64>
      %78 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f64>) -> tensor<64x2xf64>
      %79 = stablehlo.divide %77, %78 : tensor<64x2xf64>
      %80 = stablehlo.add %iterArg_2, %79 : tensor<64x2xf64>
      %81 = stablehlo.slice %80 [0:64, 0:1] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %82 = stablehlo.reshape %81 : (tensor<64x1xf64>) -> tensor<64xf64>
      %83 = stablehlo.slice %80 [0:64, 1:2] : (tensor<64x2xf64>) -> tensor<64x1xf64>
      %84 = stablehlo.reshape %83 : (tensor<64x1xf64>) -> tensor<64xf64>
      %85 = stablehlo.sine %82 : tensor<64xf64>
      %cst_21 = stablehlo.constant dense<-9.810000e+00> : tensor<f64>
      %86 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %87 = stablehlo.multiply %86, %85 : tensor<64xf64>
      %cst_22 = stablehlo.constant dense<1.000000e-01> : tensor<f64>
      %88 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %89 = stablehlo.multiply %88, %84 : tensor<64xf64>
      %90 = stablehlo.subtract %87, %89 : tensor<64xf64>
      %91 = stablehlo.broadcast_in_dim %84, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %92 = stablehlo.broadcast_in_dim %90, dims = [1] : (tensor<64xf64>) -> tensor<1x64xf64>
      %93 = stablehlo.concatenate %91, %92, dim = 0 : (tensor<1x64xf64>, tensor<1x64xf64>) -> tensor<2x64xf64>
      %cst_23 = stablehlo.constant dense<-5.000000e+00> : tensor<f64>
      %94 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %95 = stablehlo.multiply %94, %20 : tensor<2x64xf64>
      %cst_24 = stablehlo.constant dense<7.200000e+01> : tensor<f64>
      %96 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %97 = stablehlo.divide %95, %96 : tensor<2x64xf64>
      %cst_25 = stablehlo.constant dense<1.200000e+01> : tensor<f64>
      %98 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %99 = stablehlo.divide %41, %98 : tensor<2x64xf64>
      %100 = stablehlo.add %97, %99 : tensor<2x64xf64>
      %cst_26 = stablehlo.constant dense<9.000000e+00> : tensor<f64>
      %101 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %102 = stablehlo.divide %64, %101 : tensor<2x64xf64>
      %103 = stablehlo.add %100, %102 : tensor<2x64xf64>
      %cst_27 = stablehlo.constant dense<8.000000e+00> : tensor<f64>
      %104 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f64>) -> tensor<2x64xf64>
      %105 = stablehlo.divide %93, %104 : tensor<2x64xf64>
      %106 = stablehlo.subtract %103, %105 : tensor<2x64xf64>
      %107 = stablehlo.convert %7 : tensor<64xf64>
      %108 = stablehlo.transpose %106, dims = [1, 0] : (tensor<2x64xf64>) -> tensor<64x2xf64>
      %109 = stablehlo.broadcast_in_dim %107, dims = [0] : (tensor<64xf64>) -> tensor<64x1xf64>
      %110 = stablehlo.broadcast_in_dim %109, dims = [0, 1] : (tensor<64x1xf64>) -> tensor<64x2xf64>
      %111 = stablehlo.multiply %110, %108 : tensor<64x2xf64>
      %112 = stablehlo.abs %111 : tensor<64x2xf64>
      %cst_28 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
      %113 = stablehlo.reduce(%112 init: %cst_28) applies stablehlo.maximum across dimensions = [1] : (tensor<64x2xf64>, tensor<f64>) -> tensor<64xf64>
      %114 = stablehlo.broadcast_in_dim %iterArg, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %115 = stablehlo.compare LE, %113, %114, FLOAT : (tensor<64xf64>, tensor<64xf64>) -> tensor<64xi1>
      %cst_29 = stablehlo.constant dense<1.000000e-300> : tensor<f64>
      %116 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %117 = stablehlo.maximum %113, %116 : tensor<64xf64>
      %118 = stablehlo.broadcast_in_dim %iterArg, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %119 = stablehlo.divide %118, %117 : tensor<64xf64>
      %cst_30 = stablehlo.constant dense<0.33333333333333331> : tensor<f64>
      %120 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %121 = stablehlo.power %119, %120 : tensor<64xf64>
      %cst_31 = stablehlo.constant dense<9.000000e-01> : tensor<f64>
      %122 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %123 = stablehlo.multiply %122, %121 : tensor<64xf64>
      %cst_32 = stablehlo.constant dense<2.000000e-01> : tensor<f64>
      %c_33 = stablehlo.constant dense<5> : tensor<i64>
      %124 = func.call @clip(%123, %cst_32, %c_33) : (tensor<64xf64>, tensor<f64>, tensor<i64>) -> tensor<64xf64>
      %125 = func.call @_where(%115, %80, %iterArg_2) : (tensor<64xi1>, tensor<64x2xf64>, tensor<64x2xf64>) -> tensor<64x2xf64>
      %126 = stablehlo.add %iterArg_3, %7 : tensor<64xf64>
      %127 = func.call @_where_0(%115, %126, %iterArg_3) : (tensor<64xi1>, tensor<64xf64>, tensor<64xf64>) -> tensor<64xf64>
      %128 = stablehlo.convert %7 : tensor<64xf64>
      %129 = stablehlo.multiply %128, %124 : tensor<64xf64>
      %cst_34 = stablehlo.constant dense<9.9999999999999995E-7> : tensor<f64>
      %130 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %131 = stablehlo.maximum %129, %130 : tensor<64xf64>
      %132 = stablehlo.convert %115 : (tensor<64xi1>) -> tensor<64xi64>
      %133 = stablehlo.add %iterArg_5, %132 : tensor<64xi64>
      %134 = stablehlo.not %115 : tensor<64xi1>
      %135 = stablehlo.convert %134 : (tensor<64xi1>) -> tensor<64xi64>
      %136 = stablehlo.add %iterArg_6, %135 : tensor<64xi64>
      %cst_35 = stablehlo.constant dense<1.000000e+01> : tensor<f64>
      %137 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f64>) -> tensor<64xf64>
      %138 = stablehlo.compare LT, %iterArg_3, %137, FLOAT : (tensor<64xf64>, tensor<64xf64>) -> tensor<64xi1>
      %139 = stablehlo.broadcast_in_dim %138, dims = [0] : (tensor<64xi1>) -> tensor<64x2xi1>
      %140 = stablehlo.select %139, %125, %iterArg_2 : tensor<64x2xi1>, tensor<64x2xf64>
      %141 = stablehlo.broadcast_in_dim %138, dims = [0] : (tensor<64xi1>) -> tensor<64xi1>
      %142 = stablehlo.select %141, %127, %iterArg_3 : tensor<64xi1>, tensor<64xf64>
      %143 = stablehlo.broadcast_in_dim %138, dims = [0] : (tensor<64xi1>) -> tensor<64xi1>
      %144 = stablehlo.select %143, %131, %iterArg_4 : tensor<64xi1>, tensor<64xf64>
      %145 = stablehlo.broadcast_in_dim %138, dims = [0] : (tensor<64xi1>) -> tensor<64xi1>
      %146 = stablehlo.select %145, %133, %iterArg_5 : tensor<64xi1>, tensor<64xi64>
      %147 = stablehlo.broadcast_in_dim %138, dims = [0] : (tensor<64xi1>) -> tensor<64xi1>
      %148 = stablehlo.select %147, %136, %iterArg_6 : tensor<64xi1>, tensor<64xi64>
      stablehlo.return %iterArg, %140, %142, %144, %146, %148 : tensor<f64>, tensor<64x2xf64>, tensor<64xf64>, tensor<64xf64>, tensor<64xi64>, tensor<64xi64>
    }
    return %4#5, %4#1, %4#4 : tensor<64xi64>, tensor<64x2xf64>, tensor<64xi64>
  }
  func.func private @clip(%arg0: tensor<64xf64>, %arg1: tensor<f64>, %arg2: tensor<i64>) -> tensor<64xf64> {
    %0 = stablehlo.convert %arg1 : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<64xf64>
    %2 = stablehlo.maximum %1, %arg0 : tensor<64xf64>
    %3 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f64>) -> tensor<64xf64>
    %5 = stablehlo.minimum %4, %2 : tensor<64xf64>
    return %5 : tensor<64xf64>
  }
  func.func private @_where(%arg0: tensor<64xi1>, %arg1: tensor<64x2xf64>, %arg2: tensor<64x2xf64>) -> tensor<64x2xf64> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<64xi1>) -> tensor<64x2xi1>
    %1 = stablehlo.select %0, %arg1, %arg2 : tensor<64x2xi1>, tensor<64x2xf64>
    return %1 : tensor<64x2xf64>
  }
  func.func private @_where_0(%arg0: tensor<64xi1>, %arg1: tensor<64xf64>, %arg2: tensor<64xf64>) -> tensor<64xf64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<64xi1>, tensor<64xf64>
    return %0 : tensor<64xf64>
  }
}
