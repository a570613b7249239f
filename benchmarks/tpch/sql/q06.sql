-- TPC-H query 6, text after the TPC-H specification, revision 3.0.1, section 2.4.6
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '{day}' AND l_shipdate < DATE '{day}' + INTERVAL '1' YEAR
  AND l_discount BETWEEN {discount} - 0.01 AND {discount} + 0.01 AND l_quantity < {quantity};
