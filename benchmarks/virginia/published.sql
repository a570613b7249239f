-- The queries as published: Bakkum and Skadron 2010, bakks/sphyraena (MIT licence), papers/bakkum.sql.db.gpu.pdf.
-- test(id INTEGER PRIMARY KEY, uniformi INT, normali5 INT, normali20 INT, uniformf FLOAT, normalf5 FLOAT, normalf20 FLOAT)

-- 1
SELECT id, uniformi, normali5 FROM test WHERE uniformi > 60 AND normali5 < 0;
-- 2
SELECT id, uniformf, normalf5 FROM test WHERE uniformf > 60 AND normalf5 < 0;
-- 3
SELECT id, uniformi, normali5 FROM test WHERE uniformi > -60 AND normali5 < 5;
-- 4
SELECT id, uniformf, normalf5 FROM test WHERE uniformf > -60 AND normalf5 < 5;
-- 5
SELECT id, normali5, normali20 FROM test WHERE (normali20 + 40) > (uniformi - 10);
-- 6
SELECT id, normalf5, normalf20 FROM test WHERE (normalf20 + 40) > (uniformf - 10);
-- 7
SELECT id, normali5, normali20 FROM test WHERE normali5 * normali20 BETWEEN -5 AND 5;
-- 8
SELECT id, normalf5, normalf20 FROM test WHERE normalf5 * normalf20 BETWEEN -5 AND 5;
-- 9
SELECT id, uniformi, normali5, normali20 FROM test WHERE NOT uniformi OR NOT normali5 OR NOT normali20;
-- 10
SELECT id, uniformf, normalf5, normalf20 FROM test WHERE NOT uniformf OR NOT normalf5 OR NOT normalf20;
-- 11
SELECT SUM(normalf20) FROM test;
-- 12
SELECT AVG(uniformi) FROM test WHERE uniformi > 0;
-- 13
SELECT MAX(normali5), MIN(normali5) FROM test;
