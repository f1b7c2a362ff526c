module @jit_clustering attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2000x4xf32>, %arg1: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result['centers']"}, tensor<f32> {jax.result_info = "result['mean square']"}, tensor<2000xi32> {jax.result_info = "result['owners']"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0:4 = stablehlo.while(%iterArg = %arg0, %iterArg_4 = %c_0, %iterArg_5 = %c, %iterArg_6 = %arg1) : tensor<2000x4xf32>, tensor<i32>, tensor<i32>, tensor<8x4xf32>
    cond {
      %c_7 = stablehlo.constant dense<15> : tensor<i32>
      %12 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %12 : tensor<i1>
    } do {
      %12:2 = func.call @closed_call(%iterArg, %iterArg_5, %iterArg_6) : (tensor<2000x4xf32>, tensor<i32>, tensor<8x4xf32>) -> (tensor<i32>, tensor<8x4xf32>)
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %13 = stablehlo.add %iterArg_4, %c_7 : tensor<i32>
      stablehlo.return %iterArg, %13, %12#0, %12#1 : tensor<2000x4xf32>, tensor<i32>, tensor<i32>, tensor<8x4xf32>
    }
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<2000x4xf32>) -> tensor<2000x1x4xf32>
    %2 = stablehlo.broadcast_in_dim %0#3, dims = [1, 2] : (tensor<8x4xf32>) -> tensor<1x8x4xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2000x1x4xf32>) -> tensor<2000x8x4xf32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<1x8x4xf32>) -> tensor<2000x8x4xf32>
    %5 = stablehlo.subtract %3, %4 : tensor<2000x8x4xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<2000x8x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2000x8x4xf32>, tensor<f32>) -> tensor<2000x8xf32>
    %8 = call @argmin(%7) : (tensor<2000x8xf32>) -> tensor<2000xi32>
    %cst_1 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %9 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.minimum across dimensions = [1] : (tensor<2000x8xf32>, tensor<f32>) -> tensor<2000xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<2000xf32>, tensor<f32>) -> tensor<f32>
    %cst_3 = stablehlo.constant dense<2.000000e+03> : tensor<f32>
    %11 = stablehlo.divide %10, %cst_3 : tensor<f32>
    return %0#3, %11, %8 : tensor<8x4xf32>, tensor<f32>, tensor<2000xi32>
  }
  func.func private @closed_call(%arg0: tensor<2000x4xf32>, %arg1: tensor<i32>, %arg2: tensor<8x4xf32>) -> (tensor<i32>, tensor<8x4xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg1, %c : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<2000x4xf32>) -> tensor<2000x1x4xf32>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [1, 2] : (tensor<8x4xf32>) -> tensor<1x8x4xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2000x1x4xf32>) -> tensor<2000x8x4xf32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<1x8x4xf32>) -> tensor<2000x8x4xf32>
    %5 = stablehlo.subtract %3, %4 : tensor<2000x8x4xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<2000x8x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2000x8x4xf32>, tensor<f32>) -> tensor<2000x8xf32>
    %8 = call @argmin(%7) : (tensor<2000x8xf32>) -> tensor<2000xi32>
    %cst_0 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %9 = stablehlo.reduce(%7 init: %cst_0) applies stablehlo.minimum across dimensions = [1] : (tensor<2000x8xf32>, tensor<f32>) -> tensor<2000xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %11 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<2000xi32>) -> tensor<2000x1xi32>
    %12 = "stablehlo.scatter"(%10, %11, %arg0) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %26 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %26 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<2000x1xi32>, tensor<2000x4xf32>) -> tensor<8x4xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2000xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %15 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<2000xi32>) -> tensor<2000x1xi32>
    %16 = "stablehlo.scatter"(%14, %15, %13) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %26 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %26 : tensor<f32>
    }) : (tensor<8xf32>, tensor<2000x1xi32>, tensor<2000xf32>) -> tensor<8xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
    %19 = stablehlo.compare GT, %17, %18, FLOAT : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xi1>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %21 = stablehlo.maximum %16, %20 : tensor<8xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
    %24 = stablehlo.divide %12, %23 : tensor<8x4xf32>
    %25 = call @_where(%19, %24, %arg2) : (tensor<8x1xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0, %25 : tensor<i32>, tensor<8x4xf32>
  }
  func.func private @argmin(%arg0: tensor<2000x8xf32>) -> tensor<2000xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<2000x8xi32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<2000x8xf32>, tensor<2000x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<2000xf32>, tensor<2000xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare LT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
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
    return %1#1 : tensor<2000xi32>
  }
  func.func private @_where(%arg0: tensor<8x1xi1>, %arg1: tensor<8x4xf32>, %arg2: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8x1xi1>) -> tensor<8x4xi1>
    %1 = stablehlo.select %0, %arg1, %arg2 : tensor<8x4xi1>, tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
