module @loop_contracting attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<256x512xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}, %1: tensor<512x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<256x512xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}) {
    %2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %3:3 = "stablehlo.while"(%2, %0, %1) ({
      ^bb0(%4: tensor<i32>, %5: tensor<256x512xf32>, %6: tensor<512x512xf32>):
      %7 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> (tensor<i32>)
      %8 = "stablehlo.compare"(%4, %7) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
      ^bb0(%9: tensor<i32>, %10: tensor<256x512xf32>, %11: tensor<512x512xf32>):
      %12 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %13 = "stablehlo.add"(%9, %12) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      %14 = "stablehlo.dot_general"(%10, %11) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<256x512xf32>, tensor<512x512xf32>) -> (tensor<256x512xf32>)
      "stablehlo.return"(%13, %14, %11) : (tensor<i32>, tensor<256x512xf32>, tensor<512x512xf32>) -> ()
    }) : (tensor<i32>, tensor<256x512xf32>, tensor<512x512xf32>) -> (tensor<i32>, tensor<256x512xf32>, tensor<512x512xf32>)
    %15 = "stablehlo.custom_call"(%3#1) {call_target_name = "Sharding", mhlo.sharding = "{devices=[1,8]<=[8]}"} : (tensor<256x512xf32>) -> (tensor<256x512xf32>)
    return %15 : tensor<256x512xf32>
  }
}
