"""Moments of dense vectors: mixtures of Gaussians and independent factors.

Hsu and Kakade, *Learning mixtures of spherical Gaussians*, ITCS 2013, and Anandkumar, Foster, Hsu,
Kakade, Liu, *A spectral algorithm for latent Dirichlet allocation*, NIPS 2012 (skewed or kurtotic
factors): one whitening by the signal in the covariance, one tensor, one rotation.
"""
