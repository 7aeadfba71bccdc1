"""What Recado costs beside what cannot be avoided: every benchmark measures its bound in the same run."""
