"""Programs that watch a scheduler and turn its ends of jobs into events."""
