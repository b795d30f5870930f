"""How results are shown: plain data first (`…_data`), drawing second (`draw_…`).

Tests compare the data; drawings are only checked for what a reader must find in them.
"""
