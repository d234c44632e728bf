module @embed_features_split attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<8000x512xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %1: tensor<64x128xi32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}) -> (tensor<64x128x512xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8]}"}) {
    %2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<64x128xi32>)
    %4 = "stablehlo.compare"(%1, %3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<64x128xi32>, tensor<64x128xi32>) -> (tensor<64x128xi1>)
    %5 = "stablehlo.constant"() {value = dense<8000> : tensor<i32>} : () -> (tensor<i32>)
    %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<64x128xi32>)
    %7 = "stablehlo.add"(%1, %6) : (tensor<64x128xi32>, tensor<64x128xi32>) -> (tensor<64x128xi32>)
    %8 = "stablehlo.select"(%4, %7, %1) : (tensor<64x128xi1>, tensor<64x128xi32>, tensor<64x128xi32>) -> (tensor<64x128xi32>)
    %9 = "stablehlo.gather"(%0, %8) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 512>} : (tensor<8000x512xf32>, tensor<64x128xi32>) -> (tensor<64x128x512xf32>)
    %10 = "stablehlo.custom_call"(%9) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,1,4]<=[8]}"} : (tensor<64x128x512xf32>) -> (tensor<64x128x512xf32>)
    return %10 : tensor<64x128x512xf32>
  }
}
