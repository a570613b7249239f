"""A GPU that is to be had for a few minutes: parity with the CPU, figures as ratios of its copy bandwidth, real faults."""
