-- Star Schema Benchmark query 2.2, after O'Neil, O'Neil, Chen, Revilak 2009; the table DATE is named dates
SELECT sum(lo_revenue) AS revenue, d_year, p_brand1
FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
  AND p_brand1 BETWEEN '{category}21' AND '{category}28' AND s_region = '{region}'
GROUP BY d_year, p_brand1
ORDER BY d_year, p_brand1;
