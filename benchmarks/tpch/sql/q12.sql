-- TPC-H query 12, text after the TPC-H specification, revision 3.0.1, section 2.4.12
SELECT l_shipmode,
       sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
       sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('{one}', '{other}')
  AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
  AND l_receiptdate >= DATE '{day}' AND l_receiptdate < DATE '{day}' + INTERVAL '1' YEAR
GROUP BY l_shipmode
ORDER BY l_shipmode;
