"""`python -m benchmarks report`: what a table of head-to-head runs shows, in pictures, statistics and Markdown."""
