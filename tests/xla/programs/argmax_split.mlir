module @argmax_split attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x4096xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<512xi32> {mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dim_replicate}"}) {
    %1 = "stablehlo.constant"() {value = dense<2147483647> : tensor<i32>} : () -> (tensor<i32>)
    %2 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> (tensor<f32>)
    %3 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<512x4096xi32>)
    %4:2 = "stablehlo.reduce"(%0, %3, %2, %1) ({
      ^bb0(%5: tensor<f32>, %6: tensor<i32>, %7: tensor<f32>, %8: tensor<i32>):
      %9 = "stablehlo.compare"(%5, %7) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
      %10 = "stablehlo.compare"(%5, %7) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
      %11 = "stablehlo.compare"(%5, %5) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
      %12 = "stablehlo.compare"(%7, %7) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
      %13 = "stablehlo.not"(%12) : (tensor<i1>) -> (tensor<i1>)
      %14 = "stablehlo.and"(%11, %13) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
      %15 = "stablehlo.or"(%9, %14) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
      %16 = "stablehlo.and"(%11, %12) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
      %17 = "stablehlo.or"(%10, %16) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
      %18 = "stablehlo.compare"(%6, %8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      %19 = "stablehlo.and"(%17, %18) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
      %20 = "stablehlo.or"(%15, %19) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
      %21 = "stablehlo.select"(%20, %5, %7) : (tensor<i1>, tensor<f32>, tensor<f32>) -> (tensor<f32>)
      %22 = "stablehlo.select"(%20, %6, %8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> (tensor<i32>)
      "stablehlo.return"(%21, %22) : (tensor<f32>, tensor<i32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<512x4096xf32>, tensor<512x4096xi32>, tensor<f32>, tensor<i32>) -> (tensor<512xf32>, tensor<512xi32>)
    %23 = "stablehlo.custom_call"(%4#1) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dim_replicate}"} : (tensor<512xi32>) -> (tensor<512xi32>)
    return %23 : tensor<512xi32>
  }
}
