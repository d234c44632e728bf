module @dot_2d_transposed attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x512xf32> {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0)}"}, %1: tensor<512x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<512x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) {
    %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x512xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    %3 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    return %3 : tensor<512x1024xf32>
  }
}
