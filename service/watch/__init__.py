"""Programs that watch a scheduler and send an event for each finished job."""
