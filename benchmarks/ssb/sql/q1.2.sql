-- Star Schema Benchmark query 1.2, after O'Neil, O'Neil, Chen, Revilak 2009; the table DATE is named dates
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_yearmonthnum = {month}
  AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35;
