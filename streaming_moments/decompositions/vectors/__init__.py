"""Moments of dense vectors: mixtures of Gaussians and independent factors.

Mixtures are fitted by the method of Hsu and Kakade, *Learning mixtures of spherical Gaussians*,
ITCS 2013. Skewed or kurtotic factors are fitted by that of Anandkumar, Foster, Hsu, Kakade, Liu, *A
spectral algorithm for latent Dirichlet allocation*, NIPS 2012. Both methods whiten by the signal in
the covariance, and then rotate a whitened tensor.
"""
