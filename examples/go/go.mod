module qretention-host

go 1.19
