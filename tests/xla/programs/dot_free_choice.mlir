module @dot_free_choice attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x512xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}, %1: tensor<512x1024xf32> {mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) -> (tensor<512x1024xf32>) {
    %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x512xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    return %2 : tensor<512x1024xf32>
  }
}
