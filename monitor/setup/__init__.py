"""What has to be on a machine before Whilst runs: places, Java, the JVM parts.

Nothing here needs more than the standard library, so that a clone can set itself up with it.
"""
