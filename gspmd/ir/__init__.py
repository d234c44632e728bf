"""What a program is: mesh, shardings, types, factor rules, graph, text format, verifier."""
