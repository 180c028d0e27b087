"""Cases that asv times on any commit from 0.1.0 on.

They import the package only in `setup`, and draw their data by NumPy alone.
"""
