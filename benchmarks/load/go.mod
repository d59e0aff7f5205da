module penstock/load

go 1.22
