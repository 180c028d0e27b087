"""Moments of dense vectors: mixtures of Gaussians and independent factors.

Hsu and Kakade, *Learning mixtures of spherical Gaussians*, ITCS 2013, and Anandkumar, Foster, Hsu,
Kakade, Liu, *A spectral algorithm for latent Dirichlet allocation*, NIPS 2012 (factors that are
skewed or kurtotic): one whitening by the signal that the covariance holds above its noise, one
tensor, one rotation.
"""
