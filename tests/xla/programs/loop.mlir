// Five products in a loop, the contracted dimension split over all devices: a collective that runs five times.
module @loop attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(
      %x: tensor<16x32xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
      %w: tensor<32x32xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<16x32xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<16x32xf32>
      cond {
        %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %b : tensor<i32>, tensor<16x32xf32>
      }
    return %0#1 : tensor<16x32xf32>
  }
}
