-- TPC-H query 14, text after the TPC-H specification, revision 3.0.1, section 2.4.14
SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
       / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey
  AND l_shipdate >= DATE '{day}' AND l_shipdate < DATE '{day}' + INTERVAL '1' MONTH;
