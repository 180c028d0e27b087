"""Moments of dense vectors: mixtures of Gaussians and independent factors.

The methods are those of Hsu and Kakade, *Learning mixtures of spherical Gaussians*, ITCS 2013, and
Anandkumar, Foster, Hsu, Kakade, Liu, *A spectral algorithm for latent Dirichlet allocation*, NIPS
2012 (skewed or kurtotic factors). All whiten by the signal in the covariance, and then rotate a
whitened tensor.
"""
