-- Star Schema Benchmark query 4.3, after O'Neil, O'Neil, Chen, Revilak 2009; the table DATE is named dates
SELECT d_year, s_city, p_brand1, sum(lo_revenue - lo_supplycost) AS profit
FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey
  AND c_region = '{region}' AND s_nation = '{nation}'
  AND (d_year = 1997 OR d_year = 1998) AND p_category = '{category}'
GROUP BY d_year, s_city, p_brand1
ORDER BY d_year, s_city, p_brand1;
