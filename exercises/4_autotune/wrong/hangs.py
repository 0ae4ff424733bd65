"""Does not come back from its import."""
import time

time.sleep(3600)
