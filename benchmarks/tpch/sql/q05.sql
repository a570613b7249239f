-- TPC-H query 5, text after the TPC-H specification, revision 3.0.1, section 2.4.5
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = '{region}'
  AND o_orderdate >= DATE '{day}' AND o_orderdate < DATE '{day}' + INTERVAL '1' YEAR
GROUP BY n_name
ORDER BY revenue DESC;
