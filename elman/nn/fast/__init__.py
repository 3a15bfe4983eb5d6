"""What makes the equations of `elman.nn` fast: compiled recurrences, gradients made once for all steps."""
