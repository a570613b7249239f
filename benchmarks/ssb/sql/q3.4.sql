-- Star Schema Benchmark query 3.4, after O'Neil, O'Neil, Chen, Revilak 2009; the table DATE is named dates
SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue
FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
  AND (c_city = '{nation}{one}' OR c_city = '{nation}{other}') AND (s_city = '{nation}{one}' OR s_city = '{nation}{other}')
  AND d_yearmonth = '{month}'
GROUP BY c_city, s_city, d_year
ORDER BY d_year, revenue DESC;
