module @dot_chain attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %1: tensor<512x1024xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}, %2: tensor<1024x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<512x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %3 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x512xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    %4 = "stablehlo.dot_general"(%3, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x1024xf32>, tensor<1024x512xf32>) -> (tensor<512x512xf32>)
    %5 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<512x512xf32>) -> (tensor<512x512xf32>)
    return %5 : tensor<512x512xf32>
  }
}
