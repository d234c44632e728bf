module @pick_features_split attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<2048x1000xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}, %1: tensor<2048xi32> {mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dim_replicate}"}) -> (tensor<2048xf32> {mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dim_replicate}"}) {
    %2 = "stablehlo.reshape"(%1) : (tensor<2048xi32>) -> (tensor<2048x1xi32>)
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<2048x1xi32>)
    %5 = "stablehlo.compare"(%2, %4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<2048x1xi32>, tensor<2048x1xi32>) -> (tensor<2048x1xi1>)
    %6 = "stablehlo.constant"() {value = dense<1000> : tensor<i32>} : () -> (tensor<i32>)
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<2048x1xi32>)
    %8 = "stablehlo.add"(%2, %7) : (tensor<2048x1xi32>, tensor<2048x1xi32>) -> (tensor<2048x1xi32>)
    %9 = "stablehlo.select"(%5, %8, %2) : (tensor<2048x1xi1>, tensor<2048x1xi32>, tensor<2048x1xi32>) -> (tensor<2048x1xi32>)
    %10 = "stablehlo.gather"(%0, %9) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>} : (tensor<2048x1000xf32>, tensor<2048x1xi32>) -> (tensor<2048x1xf32>)
    %11 = "stablehlo.reshape"(%10) : (tensor<2048x1xf32>) -> (tensor<2048xf32>)
    %12 = "stablehlo.custom_call"(%11) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dim_replicate}"} : (tensor<2048xf32>) -> (tensor<2048xf32>)
    return %12 : tensor<2048xf32>
  }
}
