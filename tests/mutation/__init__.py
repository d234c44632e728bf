"""Do the laws notice a wrong rule? Each op's rule is altered in turn, and every alteration must be found."""
