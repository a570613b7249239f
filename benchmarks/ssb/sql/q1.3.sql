-- Star Schema Benchmark query 1.3, after O'Neil, O'Neil, Chen, Revilak 2009; the table DATE is named dates
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_weeknuminyear = {week} AND d_year = {year}
  AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35;
