// Pauses after errors, under a clock that the history moves.
package exponentialbackoff

import "time"

var wall time.Time

func wallNow() time.Time                        { return wall }
func wallSince(earlier time.Time) time.Duration { return wall.Sub(earlier) }

// Set moves the clock.
func Set(to time.Time) { wall = to }
