-- TPC-H query 22, text after the TPC-H specification, revision 3.0.1, section 2.4.22
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
      FROM customer
      WHERE substring(c_phone FROM 1 FOR 2) IN ('{c1}', '{c2}', '{c3}', '{c4}', '{c5}', '{c6}', '{c7}')
        AND c_acctbal > (SELECT avg(c_acctbal) FROM customer
                         WHERE c_acctbal > 0.00
                           AND substring(c_phone FROM 1 FOR 2) IN ('{c1}', '{c2}', '{c3}', '{c4}', '{c5}', '{c6}', '{c7}'))
        AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode;
