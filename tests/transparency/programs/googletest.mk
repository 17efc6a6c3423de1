CXXFLAGS = -O1 -std=c++17 -Igt/include -Igt -pthread
objects = gtest-all.o gtest_main.o sample1.o sample1_unittest.o
vpath %.cc gt/src gt/samples
sample: $(objects)
	$(CXX) -pthread -o $@ $^
