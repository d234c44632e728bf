module @loop_while attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x256xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %1: tensor<256x256xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}) -> (tensor<512x256xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %2:2 = "stablehlo.while"(%0, %1) ({
      ^bb0(%3: tensor<512x256xf32>, %4: tensor<256x256xf32>):
      %5 = "stablehlo.multiply"(%3, %3) : (tensor<512x256xf32>, tensor<512x256xf32>) -> (tensor<512x256xf32>)
      %6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
      %7 = "stablehlo.reduce"(%5, %6) ({
        ^bb0(%8: tensor<f32>, %9: tensor<f32>):
        %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
        "stablehlo.return"(%10) : (tensor<f32>) -> ()
      }) {dimensions = array<i64: 0, 1>} : (tensor<512x256xf32>, tensor<f32>) -> (tensor<f32>)
      %11 = "stablehlo.constant"() {value = dense<0.0010000000474974513> : tensor<f32>} : () -> (tensor<f32>)
      %12 = "stablehlo.compare"(%7, %11) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
      "stablehlo.return"(%12) : (tensor<i1>) -> ()
    }, {
      ^bb0(%13: tensor<512x256xf32>, %14: tensor<256x256xf32>):
      %15 = "stablehlo.dot_general"(%13, %14) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x256xf32>, tensor<256x256xf32>) -> (tensor<512x256xf32>)
      %16 = "stablehlo.constant"() {value = dense<0.10000000149011612> : tensor<f32>} : () -> (tensor<f32>)
      %17 = "stablehlo.broadcast_in_dim"(%16) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<512x256xf32>)
      %18 = "stablehlo.multiply"(%17, %15) : (tensor<512x256xf32>, tensor<512x256xf32>) -> (tensor<512x256xf32>)
      "stablehlo.return"(%18, %14) : (tensor<512x256xf32>, tensor<256x256xf32>) -> ()
    }) : (tensor<512x256xf32>, tensor<256x256xf32>) -> (tensor<512x256xf32>, tensor<256x256xf32>)
    %19 = "stablehlo.custom_call"(%2#0) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<512x256xf32>) -> (tensor<512x256xf32>)
    return %19 : tensor<512x256xf32>
  }
}
