-- Star Schema Benchmark query 1.1, after O'Neil, O'Neil, Chen, Revilak 2009; the table DATE is named dates
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_year = {year}
  AND lo_discount BETWEEN {low} AND {low} + 2 AND lo_quantity < 25;
