module readygate.dev/bench

go 1.25
