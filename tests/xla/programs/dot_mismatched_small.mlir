module @dot_mismatched_small attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<64x1024xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %1: tensor<1024x2048xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<64x2048xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<64x1024xf32>, tensor<1024x2048xf32>) -> (tensor<64x2048xf32>)
    %3 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<64x2048xf32>) -> (tensor<64x2048xf32>)
    return %3 : tensor<64x2048xf32>
  }
}
